"""Files of a repository that the server itself reads and writes.

A Git that was taken over may have replaced any of them: no link is followed, and only new files are written. They
belong to the server until they are complete, then to the user of the repository.
"""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from io import BufferedRandom, BufferedWriter, FileIO
from pathlib import Path
from typing import cast

from roost.core import ids, log
from roost.drivers.git.contract import GitFailed
from roost.drivers.git.pack_writer import PackWriter

PACKS = "objects/pack"
_ENDINGS = ("pack", "rev", "bitmap", "mtimes", "idx")
"""Files of a pack, the last of which makes it visible to Git."""
_MAX_PACKS = 10_000
_PACK_FILE = re.compile(rf"(pack-[0-9a-f]{{40}})\.({'|'.join(_ENDINGS)})")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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
            descriptor = os.open(file, _OLD_FILE, dir_fd=place)
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


def set_reference(repository: Path, name: str, commit: str | None) -> None:
    """Move a reference, or remove it, unless it is there. Raises OSError."""
    if commit is None:
        with suppress(FileNotFoundError):
            remove_reference(repository, name)
    elif read_reference(repository, name) != commit:
        write_reference(repository, name, commit)


def sync_folder(repository: Path, name: str) -> None:
    """Make the names in a folder durable. Raises OSError."""
    with _open_folder(repository, name) as place:
        os.fsync(place)


def list_packs(repository: Path) -> dict[str, int]:
    """Return the names and sizes of the files in the folder of packs. Raises OSError."""
    with _open_folder(repository, PACKS) as place, os.scandir(place) as files:
        return {file.name: file.stat(follow_symlinks=False).st_size for file in files}


def list_whole_packs(repository: Path) -> Mapping[str, Mapping[str, int]]:
    """Return the sizes of the files of each pack that Git sees, by their endings. Raises OSError, GitFailed."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, size in list_packs(repository).items():
        if matched := _PACK_FILE.fullmatch(name):
            found[matched[1]][matched[2]] = size
    if len(found) > _MAX_PACKS:
        raise GitFailed("The agent's Git repository has too many packs")
    return {
        name: {ending: sizes[ending] for ending in _ENDINGS if ending in sizes}
        for name, sizes in found.items()
        if {"pack", "idx"} <= sizes.keys()
    }


def open_pack_file(repository: Path, name: str) -> FileIO:
    """Open a file in the folder of packs. Raises OSError."""
    with _open_folder(repository, PACKS) as place:
        file = FileIO(os.open(name, _OLD_FILE, dir_fd=place))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{name} is no file")
    return file


def remove_pack(repository: Path, name: str) -> None:
    """Remove the files of a pack. Raises OSError."""
    with _open_folder(repository, PACKS) as place:
        for ending in reversed(_ENDINGS):
            with suppress(FileNotFoundError):
                os.unlink(f"{name}.{ending}", dir_fd=place)


class FilesDraft:
    """Files of a pack that no command of Git sees before they are published. Blocking."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._names: dict[str, str] = {}

    @contextmanager
    def open_file(self, name: str) -> Generator[BufferedWriter]:
        """Open a new file."""
        draft = self._names[name] = f"tmp_{ids.new_id()}"
        with os.fdopen(os.open(draft, _NEW_FILE, 0o600, dir_fd=self._folder), "wb") as file:
            yield file

    def publish(self) -> None:
        """Give the files their names, in the order in which they were opened, durably. Raises OSError."""
        for draft in self._names.values():
            file = os.open(draft, _OLD_FILE, dir_fd=self._folder)
            try:
                _release_file(self._folder, file, 0o444)
            finally:
                os.close(file)
        for name, draft in self._names.items():
            os.rename(draft, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def close(self) -> None:
        """Remove the files unless they were published."""
        for draft in self._names.values():
            with suppress(OSError):
                os.unlink(draft, dir_fd=self._folder)


@contextmanager
def draft_files(repository: Path) -> Generator[FilesDraft]:
    """Begin the files of a pack. Raises OSError."""
    with _open_folder(repository, PACKS) as folder, closing(FilesDraft(folder)) as draft:
        yield draft


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
