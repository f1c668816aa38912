"""Programs of Debian beside the system's: packages unpacked in the user's cache, in a root of its own."""

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from roost.drivers.runtime.bwrap.tools import prepare_tools

SUITE, STABLE = "sid", "bookworm"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_DEADLINE, _BOOTSTRAP_DEADLINE = 300.0, 900.0


class PackagesNotFetched(Exception):  # noqa: N818 - a reason to skip
    """The packages could not be had."""


def debian_command(program: str, packages: Sequence[str], shared: Path) -> Sequence[str]:
    """Return the start of a command that runs `/usr/PROGRAM`; it sees no file but its own and those in `shared`.

    The first call downloads the packages from the Debian mirror that this machine is configured with, 15 to 40 MB.
    Raises PackagesNotFetched.
    """
    cache = cache_folder()
    root = cache / f"{'-'.join(packages)}-of-{SUITE}"
    if not root.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache, prefix=".debian-") as folder:
            try:
                _unpack(Path(folder), packages)
            except (OSError, subprocess.SubprocessError) as error:
                reason = getattr(error, "stderr", None) or error
                raise PackagesNotFetched(f"no {', '.join(packages)} from Debian {SUITE}: {reason}") from None
            with suppress(OSError):  # another process was faster
                (Path(folder) / "root").rename(root)
    links = [part for name in ("bin", "lib", "lib64") for part in ("--symlink", f"usr/{name}", f"/{name}")]
    own = ["--ro-bind", f"{root}/usr", "/usr", *links, "--proc", "/proc", "--dev", "/dev"]
    bwrap = str(prepare_tools(cache / "tools").bwrap)
    return [bwrap, "--die-with-parent", *own, "--bind", str(shared), str(shared), f"/usr/{program}"]


def debian_root_file_system(packages: Sequence[str]) -> Path:
    """Return a tar of a root file system that mmdebstrap makes of Debian 12, about 100 s the first time, 200 MB.

    Raises PackagesNotFetched.
    """
    root = cache_folder() / f"root-of-{STABLE}-with-{'-'.join(packages)}.tar"
    if not root.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache_folder(), prefix=".debian-") as folder:
            try:
                _bootstrap(Path(folder), packages)
            except (OSError, subprocess.SubprocessError) as error:
                reason = getattr(error, "stderr", None) or error
                raise PackagesNotFetched(f"no root file system of Debian {STABLE}: {reason}") from None
            (Path(folder) / "root.tar").rename(root)
    return root


def cache_folder() -> Path:
    """Return the folder of what tests download once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost-tests"


def _bootstrap(folder: Path, packages: Sequence[str]) -> None:
    """Make `root.tar` in the folder. Raises SubprocessError and OSError."""
    source = f"deb [signed-by={_KEYRING}] {_find_mirror()} {STABLE} main"
    _unpack(folder, ["mmdebstrap"], STABLE, alone=True)
    without = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
    options = ["--variant=minbase", f"--include={','.join(packages)}", '--aptopt=APT::Sandbox::User "root"', *without]
    _run(
        "perl",
        folder / "root/usr/bin/mmdebstrap",
        *options,
        STABLE,
        folder / "root.tar",
        source,
        deadline=_BOOTSTRAP_DEADLINE,
    )


def _unpack(folder: Path, packages: Sequence[str], suite: str = SUITE, *, alone: bool = False) -> None:
    """Download packages with all that they need, as if nothing was installed, or `alone`.

    Raises SubprocessError and OSError.
    """
    for name in ("lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_find_mirror()} {suite} main\n")
    settings = {
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "APT::Sandbox::User": "root",
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    _run("apt-get", *options, "update", "-q", "--error-on=any")
    archives = folder / "cache/archives"
    if alone:
        _run("apt-get", *options, "download", "-q", *packages, folder=archives)
    else:
        _run("apt-get", *options, "install", "-y", "-q", "--download-only", "--no-install-recommends", *packages)
    for package in archives.glob("*.deb"):
        _run("dpkg-deb", "-x", package, folder / "root")


def _find_mirror() -> str:
    listed = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    mirrors = re.findall(r"^\S+/debian/?$", listed, re.MULTILINE)
    if not mirrors:
        raise FileNotFoundError("apt has no Debian mirror")
    return mirrors[0]


def _run(*command: str | Path, folder: Path | None = None, deadline: float = _DEADLINE) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=deadline, cwd=folder)
    return done.stdout
