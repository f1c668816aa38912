"""Files of a repository that the server itself reads and writes.

A Git that was taken over may have replaced any of them: no link is followed, and only new files are written. They
belong to the server until they are complete, then to the user of the repository.
"""

import os
import re
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from typing import cast

from roost.core import ids, log
from roost.drivers.git.contract import GitFailed
from roost.drivers.git.pack_writer import PackWriter

PACKS = "objects/pack"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER_BYTES = 1024**2
_REFERENCE_BYTES = 64
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")
_log = log.get_logger("git")


@contextmanager
def file_errors() -> Generator[None]:
    """Raise GitFailed for errors of a repository's files."""
    try:
        yield
    except OSError as error:
        _log.error("git.write_failed", reason=str(error))
        raise GitFailed from None


def read_reference(repository: Path, name: str) -> str | None:
    """Return the object of a reference, None if it is missing, packed or no file."""
    folder, _, file = name.rpartition("/")
    try:
        with _open_folder(repository, folder) as place:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
            try:
                value = os.read(descriptor, _REFERENCE_BYTES).decode(errors="replace").strip()
            finally:
                os.close(descriptor)
    except OSError:
        return None
    return value if _OBJECT_ID.fullmatch(value) else None


def write_reference(repository: Path, name: str, commit: str) -> None:
    """Move a reference, durably. Raises OSError, also if a command of Git is about to move it."""
    folder, _, file = name.rpartition("/")
    with _open_folder(repository, folder) as place:
        _write_file(place, f"{file}.lock", f"{commit}\n".encode(), 0o644)
        try:
            os.rename(f"{file}.lock", file, src_dir_fd=place, dst_dir_fd=place)
        except OSError:
            os.unlink(f"{file}.lock", dir_fd=place)
            raise
        os.fsync(place)


def remove_reference(repository: Path, name: str) -> None:
    """Remove a reference. Raises OSError."""
    folder, _, file = name.rpartition("/")
    with _open_folder(repository, folder) as place:
        os.unlink(file, dir_fd=place)


def sync_folder(repository: Path, name: str) -> None:
    """Make the names in a folder durable. Raises OSError."""
    with _open_folder(repository, name) as place:
        os.fsync(place)


def list_packs(repository: Path) -> dict[str, int]:
    """Return the names and sizes of the files in the folder of packs. Raises OSError."""
    with _open_folder(repository, PACKS) as place, os.scandir(place) as files:
        return {file.name: file.stat(follow_symlinks=False).st_size for file in files}


class PackDraft:
    """A pack that no command of Git sees before it is published. Blocking."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._name = f"tmp_pack_{ids.new_id()}"
        descriptor = os.open(self._name, _NEW_FILE, 0o600, dir_fd=folder)
        self._file = cast("BufferedRandom", os.fdopen(descriptor, "w+b", buffering=_BUFFER_BYTES))
        self.pack = PackWriter(self._file)

    def publish(self) -> None:
        """Make the pack visible to Git, durably. Raises OSError."""
        checksum, index = self.pack.finish_pack()
        _release_file(self._folder, self._file.fileno(), 0o444)
        _write_file(self._folder, f"tmp_idx_{checksum}", index, 0o444)
        for draft, ending in ((self._name, "pack"), (f"tmp_idx_{checksum}", "idx")):
            os.rename(draft, f"pack-{checksum}.{ending}", src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def close(self) -> None:
        """Remove the draft unless it was published."""
        self._file.close()
        with suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)


@contextmanager
def draft_pack(repository: Path) -> Generator[PackDraft]:
    """Begin a pack. Raises OSError."""
    with _open_folder(repository, PACKS) as folder, closing(PackDraft(folder)) as draft:
        yield draft


@contextmanager
def _open_folder(repository: Path, name: str) -> Generator[int]:
    """Open a folder of a repository, step by step."""
    with ExitStack() as opened:
        place = os.open(repository, _FOLDER)
        opened.callback(os.close, place)
        for part in name.split("/"):
            place = os.open(part, _FOLDER, dir_fd=place)
            opened.callback(os.close, place)
        yield place


def _write_file(folder: int, name: str, data: bytes, mode: int) -> None:
    """Write a new file, durably but for its name. Raises OSError."""
    file = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            _release_file(folder, file, mode)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def _release_file(folder: int, file: int, mode: int) -> None:
    """Give a file to the owner of the folder, and make it durable."""
    os.fchmod(file, mode)
    if os.geteuid() == 0:
        owner = os.fstat(folder)
        os.fchown(file, owner.st_uid, owner.st_gid)
    os.fsync(file)
