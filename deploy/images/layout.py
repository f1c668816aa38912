"""An OCI image layout, written by ourselves so that the same files give the same digests (decision 0055).

Layers are tars with sorted names, one time, owners by number and gzip without a name or a time.
"""

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_BLOCK = 1 << 20
_GZIP_LEVEL = 6


@dataclass(frozen=True)
class Blob:
    """A blob of a layout, with the name of its format; `diff_id` is the digest of an unpacked layer."""

    media_type: str
    digest: str
    size: int
    diff_id: str = ""

    def descriptor(self) -> Mapping[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


@dataclass(frozen=True)
class Image:
    """The configuration of an image, and its layers from the lowest."""

    config: Mapping[str, Any]
    layers: Sequence[Blob]

    def with_layers(self, layers: Iterable[tuple[str, Blob]], config: Mapping[str, Any], created: str) -> "Image":
        """Return an image of this one, further layers with the sentence that says what each is, and settings."""
        added = list(layers)
        history = [{"created": created, "created_by": text} for text, _ in added]
        found = [*self.layers, *(blob for _, blob in added)]
        return Image(
            {
                **self.config,
                "created": created,
                "config": {**self.config.get("config", {}), **config},
                "rootfs": {"type": "layers", "diff_ids": [blob.diff_id for blob in found]},
                "history": [*self.config.get("history", []), *history],
            },
            found,
        )


class WritableStream(Protocol):
    def write(self, data: bytes, /) -> int: ...


class LayerWriter:
    """Adds files to a layer, in the order of the calls; folders above them are the caller's to add."""

    def __init__(self, archive: tarfile.TarFile, time: int) -> None:
        self._archive, self._time = archive, time

    def add_folder(self, path: str, mode: int = 0o755, user: int = 0) -> None:
        self._archive.addfile(self._entry(path, tarfile.DIRTYPE, mode, user))

    def add_file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        entry = self._entry(path, tarfile.REGTYPE, mode)
        entry.size = len(content)
        self._archive.addfile(entry, io.BytesIO(content))

    def add_tree(self, source: Path, path: str) -> None:
        """Add a folder with all below it, readable by every user, and executable as far as it is for its owner.

        Raises ValueError for what is neither a file, a folder nor a link.
        """
        self.add_folder(path)
        for child in sorted(source.iterdir()):
            target = f"{path}/{child.name}"
            mode = child.lstat().st_mode
            if stat.S_ISDIR(mode):
                self.add_tree(child, target)
            elif stat.S_ISLNK(mode):
                self.add_link(target, str(child.readlink()))
            elif stat.S_ISREG(mode):
                self._add_copy(child, target, 0o755 if mode & 0o100 else 0o644)
            else:
                raise ValueError(f"{child} is neither a file, a folder nor a link")

    def add_link(self, path: str, target: str) -> None:
        entry = self._entry(path, tarfile.SYMTYPE, 0o777)
        entry.linkname = target
        self._archive.addfile(entry)

    def _add_copy(self, source: Path, path: str, mode: int) -> None:
        entry = self._entry(path, tarfile.REGTYPE, mode)
        with source.open("rb") as content:
            entry.size = os.fstat(content.fileno()).st_size
            self._archive.addfile(entry, content)

    def _entry(self, path: str, kind: bytes, mode: int, user: int = 0) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(path.strip("/"))
        entry.type, entry.mode, entry.mtime, entry.uid = kind, mode, self._time, user
        return entry


class ImageLayout:
    """A folder with images by tag, as the OCI's image layout says: podman, skopeo and buildah read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "blobs/sha256").mkdir(parents=True, exist_ok=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob_path(self, digest: str) -> Path:
        return self.path / "blobs" / digest.replace(":", "/")

    def read(self, digest: str) -> Any:
        return json.loads(self.blob_path(digest).read_bytes())

    def add_bytes(self, content: bytes, media_type: str) -> Blob:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blob_path(digest).write_bytes(content)
        return Blob(media_type, digest, len(content))

    def add_json(self, value: Mapping[str, Any], media_type: str) -> Blob:
        return self.add_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), media_type)

    def add_layer(self, time: int, fill: Callable[[LayerWriter], None]) -> Blob:
        """Add a layer that `fill` writes."""

        def write(target: WritableStream) -> None:
            with tarfile.open(
                fileobj=cast("BinaryIO", target), mode="w|", format=tarfile.PAX_FORMAT, bufsize=_BLOCK
            ) as archive:
                fill(LayerWriter(archive, time))

        return self._add_packed(write)

    def add_tar(self, content: BinaryIO) -> Blob:
        """Add a layer that is a tar already, not compressed."""

        def write(target: WritableStream) -> None:
            while block := content.read(_BLOCK):
                target.write(block)

        return self._add_packed(write)

    def add_image(self, tag: str, image: Image) -> Blob:
        """Add an image and return its manifest; the tag then names it instead of another."""
        config = self.add_json(image.config, CONFIG)
        manifest = self.add_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": config.descriptor(),
                "layers": [layer.descriptor() for layer in image.layers],
            },
            MANIFEST,
        )
        names = {entry["annotations"]["org.opencontainers.image.ref.name"]: entry for entry in self._read_index()}
        names[tag] = {**manifest.descriptor(), "annotations": {"org.opencontainers.image.ref.name": tag}}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [names[name] for name in sorted(names)]}
        (self.path / "index.json").write_text(json.dumps(index))
        return manifest

    def write_archive(self, manifest: Blob, name: str, target: BinaryIO) -> None:
        """Write an image as `docker load` and `podman load` read it."""
        found = self.read(manifest.digest)
        blobs = [found["config"], *found["layers"]]
        paths = [self.blob_path(blob["digest"]).relative_to(self.path).as_posix() for blob in blobs]
        listed = [{"Config": paths[0], "RepoTags": [name], "Layers": paths[1:]}]
        with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_BLOCK) as archive:
            for path in sorted(set(paths)):
                entry = tarfile.TarInfo(path)
                with (self.path / path).open("rb") as content:
                    entry.size = os.fstat(content.fileno()).st_size
                    archive.addfile(entry, content)
            LayerWriter(archive, 0).add_file("manifest.json", json.dumps(listed).encode())

    def _read_index(self) -> Sequence[Mapping[str, Any]]:
        index = self.path / "index.json"
        return json.loads(index.read_bytes())["manifests"] if index.exists() else []

    def _add_packed(self, write: Callable[[WritableStream], None]) -> Blob:
        draft = self.path / "blobs/.draft"
        with draft.open("wb") as file:
            packed = _HashingWriter(file)
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, cast("BinaryIO", packed), mtime=0) as compressed:
                plain = _HashingWriter(compressed)
                write(plain)
        draft.rename(self.blob_path(packed.digest()))
        return Blob(LAYER, packed.digest(), packed.size, plain.digest())


class _HashingWriter:
    def __init__(self, target: WritableStream) -> None:
        self._target, self._hash, self.size = target, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._target.write(data)

    def flush(self) -> None:
        """Do nothing: the file below is flushed when it is closed."""

    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
