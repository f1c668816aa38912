"""The unpacked root of an image, in which installers run: with the image's own Python and libraries, in bwrap.

Nothing of the host can be written there but the root. The network is the host's, and registries are those that pip and
npm are configured with.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from base_image import BaseUnusable
from layout import Image, ImageLayout

from roost.drivers.runtime.bwrap.tools import prepare_tools

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_SETTINGS = re.compile(
    r"(?:https?|no|all)_proxy|ssl_cert_\w+|requests_ca_bundle|node_extra_ca_certs|pip_\w+|npm_config_\w+", re.IGNORECASE
)
_HOME_FILES = (".npmrc", ".config/pip", ".pip")
_HOME = "/tmp/home"
_PYTHONS = range(11, 14)
"""Minor versions of Python that Roost and Hermes run with."""


class BuildFailed(Exception):  # noqa: N818 - named as problems of the package are
    """A program in the root failed."""


class BuildRoot:
    """Layers of an image in a folder, and programs that run with it as their root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self._bwrap = str(prepare_tools(path.parent / "tools").bwrap)

    def unpack(self, layout: ImageLayout, image: Image) -> None:
        """Unpack all layers, the lowest first. Raises BaseUnusable."""
        for layer in image.layers:
            file = layout.blob_path(layer.digest)
            self._apply_whiteouts(file)
            # In a sandbox, because a link of a lower layer may lead out of the root.
            host = [
                part for name in ("usr", "lib", "lib64", "bin") for part in ("--ro-bind-try", f"/{name}", f"/{name}")
            ]
            command = [self._bwrap, *host, "--dir", "/tmp", "--bind", str(self.path), "/root-of-image"]
            command += ["--ro-bind", str(file), "/layer", "--unshare-net", "--die-with-parent"]
            options = ["--no-same-owner", "--exclude=./dev/*", "--exclude=dev/*", "--exclude=*.wh.*"]
            _run([*command, "tar", "-xzf", "/layer", "-C", "/root-of-image", "--delay-directory-restore", *options])

    def find_python(self) -> str:
        """Return the version of `/usr/bin/python3`, like `3.11`. Raises BaseUnusable."""
        found = self.path / "usr/bin/python3"
        target = found.readlink().name if found.is_symlink() else ""
        version = re.fullmatch(r"python3\.(\d+)", target)
        if version is None or int(version[1]) not in _PYTHONS:
            raise BaseUnusable("The base image needs Python 3.11, 3.12 or 3.13 as /usr/bin/python3")
        if not (self.path / "etc/ssl/certs/ca-certificates.crt").exists():
            raise BaseUnusable("The base image needs the certificate authorities: install ca-certificates")
        return f"3.{version[1]}"

    def run(
        self, command: Sequence[str], mounts: Mapping[str, Path], variables: Mapping[str, str] | None = None
    ) -> str:
        """Run a program and return what it prints. mounts: files and folders of the host by their path in the root.

        Raises BuildFailed with its last lines.
        """
        environment = {name: value for name, value in os.environ.items() if _SETTINGS.fullmatch(name)}
        shared = {value: Path(value) for value in environment.values() if Path(value).is_absolute()}
        shared |= {f"{_HOME}/{name}": Path.home() / name for name in _HOME_FILES}
        shared |= {name: Path(name) for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf")}
        shared |= mounts
        binds = [
            part
            for target, source in shared.items()
            if source.exists()
            for part in ("--ro-bind", str(source.resolve()), target)
        ]
        cache = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache/uv")
        if cache.is_dir():
            binds += ["--bind", str(cache), f"{_HOME}/.cache/uv"]
            environment["UV_CACHE_DIR"] = f"{_HOME}/.cache/uv"
        environment |= {"HOME": _HOME, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **(variables or {})}
        settings = [part for name, value in environment.items() for part in ("--setenv", name, value)]
        inside = [self._bwrap, "--bind", str(self.path), "/", "--dev", "/dev", "--bind", "/proc", "/proc"]
        inside += ["--tmpfs", "/tmp", *binds, "--clearenv", *settings, "--die-with-parent", "--chdir", "/"]
        return _run([*inside, *command])

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _apply_whiteouts(self, layer: Path) -> None:
        """Remove what a layer says is gone."""
        with tarfile.open(layer) as archive:
            names = [Path(name) for name in archive.getnames() if Path(name).name.startswith(_WHITEOUT)]
        for name in names:
            folder = (self.path / name).parent.resolve()
            if not folder.is_relative_to(self.path.resolve()):
                raise BaseUnusable(f"A layer of the base image names {name}")
            whole = name.name == _OPAQUE
            gone = list(folder.iterdir()) if whole and folder.is_dir() else [folder / name.name.removeprefix(_WHITEOUT)]
            for path in gone:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()[-15:]
        raise BuildFailed("\n".join([f"A program in the image's root ended with {done.returncode}:", *lines]))
    return done.stdout
