"""Base images: a root file system as a tar, an archive of `docker save`, a registry's image, or a local engine's."""

import gzip
import json
import lzma
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from layout import Image, ImageLayout
from registry import Repository, is_reference

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_SAVE = {
    "docker": ("docker", "save", "-o"),
    "podman": ("podman", "save", "-o"),
    "buildah": ("buildah", "push"),
}
_RECIPE = Path(__file__).with_name("base.Dockerfile")
_EPOCH = "1970-01-01T00:00:00Z"


class BaseUnusable(Exception):  # noqa: N818 - named as problems of the package are
    """The base image cannot be had or lacks something."""


def find_engine() -> str | None:
    """Return the first of docker, podman and buildah that is there."""
    return next((name for name in _SAVE if shutil.which(name)), None)


def architecture() -> str:
    """Return the name of this machine's architecture in images."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def load_base(source: str, layout: ImageLayout) -> Image:
    """Add the layers of a base image to a layout. Raises BaseUnusable, RegistryFailed and OSError.

    source: a file, an image of a registry with its host, or one of docker, podman or buildah; empty for what
        `base.Dockerfile` builds.
    """
    if source and Path(source).is_file():
        return _load_file(Path(source), layout)
    if is_reference(source):
        with Repository(source) as repository:
            return repository.pull_image(layout, architecture())
    with tempfile.TemporaryDirectory(dir=layout.path, prefix=".base-") as folder:
        archive = Path(folder) / "base.tar"
        _save_image(source, archive)
        return _load_file(archive, layout)


def _save_image(name: str, archive: Path) -> None:
    engine = find_engine()
    if engine is None:
        raise BaseUnusable(
            f"{name or 'BASE'} needs docker, podman or buildah, and none of them is here. Name a tar of "
            "a root file system instead "
            "(`mmdebstrap --variant=minbase --include=python3,git,ca-certificates bookworm base.tar`)."
        )
    if not name:
        name = "localhost/roost-base:latest"
        _run([engine, "build", "-t", name, "-f", str(_RECIPE), str(_RECIPE.parent)])
    if engine == "buildah":
        _run([*_SAVE[engine], name, f"docker-archive:{archive}:{name}"])
    else:
        _run([*_SAVE[engine], str(archive), name])


def _run(command: Sequence[str]) -> None:
    if subprocess.run(command, check=False).returncode:
        raise BaseUnusable(f"`{' '.join(command)}` failed; the lines above say why")


def _load_file(path: Path, layout: ImageLayout) -> Image:
    with _unpacked(path) as content:
        try:
            with tarfile.open(fileobj=content) as archive:
                if "manifest.json" in archive.getnames():
                    return _load_archive(archive, layout)
        except tarfile.TarError as error:
            raise BaseUnusable(f"{path} is no tar: {error}") from None
        content.seek(0)
        layer = layout.add_tar(content)
    config = {
        "architecture": architecture(),
        "os": "linux",
        "config": {},
        "created": _EPOCH,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
        "history": [{"created": _EPOCH, "created_by": "root file system"}],
    }
    return Image(config, [layer])


def _load_archive(archive: tarfile.TarFile, layout: ImageLayout) -> Image:
    """Load the one image of an archive of `docker save`, whose links name layers that others share."""
    (entry, *others) = json.loads(_member(archive, "manifest.json").read())
    if others:
        raise BaseUnusable("The archive has several images; save one")
    config = json.loads(_member(archive, entry["Config"]).read())
    layers = []
    for name, diff_id in zip(entry["Layers"], config["rootfs"]["diff_ids"], strict=True):
        with _decompressed(_member(archive, name)) as content:
            layers.append(layout.add_tar(content))
        if layers[-1].diff_id != diff_id:
            raise BaseUnusable(f"The layer {name} has another digest than the archive says")
    return Image(config, layers)


def _member(archive: tarfile.TarFile, name: str) -> BinaryIO:
    try:
        found = archive.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise BaseUnusable(f"The archive has no {name}")
    return cast("BinaryIO", found)


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as file, _decompressed(file) as content:
        yield content


def _decompressed(file: BinaryIO) -> BinaryIO:
    """Return a reader of a file that may be compressed with gzip or xz."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=file))
    return cast("BinaryIO", lzma.LZMAFile(file)) if start == b"\xfd7zXZ\0" else file
