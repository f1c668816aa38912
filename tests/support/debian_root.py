"""Programs of Debian beside the system's: packages unpacked in the user's cache, in a root of its own."""

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from roost.drivers.runtime.bwrap.tools import prepare_tools

SUITE = "sid"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_DEADLINE = 300.0


class PackagesNotFetched(Exception):  # noqa: N818 - a reason to skip
    """The packages could not be had."""


def debian_command(program: str, packages: Sequence[str], shared: Path) -> Sequence[str]:
    """Return the start of a command that runs `/usr/PROGRAM`; it sees no file but its own and those in `shared`.

    The first call downloads the packages from the Debian mirror that this machine is configured with, 15 to 40 MB.
    Raises PackagesNotFetched.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost-tests"
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


def _unpack(folder: Path, packages: Sequence[str]) -> None:
    """Download packages with all that they need, as if nothing was installed. Raises SubprocessError and OSError."""
    for name in ("lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_find_mirror()} {SUITE} main\n")
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
    _run("apt-get", *options, "install", "-y", "-q", "--download-only", "--no-install-recommends", *packages)
    for package in (folder / "cache/archives").glob("*.deb"):
        _run("dpkg-deb", "-x", package, folder / "root")


def _find_mirror() -> str:
    listed = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    mirrors = re.findall(r"^\S+/debian/?$", listed, re.MULTILINE)
    if not mirrors:
        raise FileNotFoundError("apt has no Debian mirror")
    return mirrors[0]


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_DEADLINE).stdout
