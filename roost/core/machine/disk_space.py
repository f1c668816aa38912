"""Free space of disks, and how much of it each kind of writer leaves.

On a disk that fills, agents are stopped first (the setting `disk_reserve`), then `/readyz` fails, then uploads are
refused. The database has the rest, because it needs space even to delete. A program can fill a disk faster than it can
be stopped; so the database has a ballast, too.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

READY_RESERVE = 64 * 1024**2
UPLOAD_RESERVE = 32 * 1024**2
BALLAST_BYTES = 64 * 1024**2
_LARGEST_SHARE = 16


@dataclass(frozen=True)
class DiskSpace:
    """Bytes of a disk that the server may still write, and of the whole disk; some file systems do not count them."""

    free: int
    total: int
    is_read_only: bool = False

    def reserved(self, reserve: int) -> int:
        """Return `reserve`, on a small disk a sixteenth of it; 0 if the file system does not count."""
        return min(reserve, self.total // _LARGEST_SHARE)

    def leaves(self, reserve: int, size: int = 0) -> bool:
        """Return whether the reserve stays free beside `size` more bytes."""
        return not self.total or self.free >= size + self.reserved(reserve)


def read_disk_space(place: Path | int) -> DiskSpace:
    """Return the space of the disk of an open file, or of a path, which may not exist yet. Raises OSError."""
    if isinstance(place, Path):
        place = next(path for path in (place, *place.parents) if path.exists())
    disk = os.statvfs(place)
    is_read_only = bool(disk.f_flag & os.ST_RDONLY)
    return DiskSpace(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize, is_read_only)


class DiskBallast:
    """A file that occupies space, which is freed when the database needs it on a full disk."""

    def __init__(self, file: Path, size: int) -> None:
        """`size` is in bytes; on a small disk it is a sixteenth of it."""
        self._file = file
        self._size = size

    def occupy(self) -> None:
        """Create the file, unless it is there or the disk has less than twice its size. Blocking; raises OSError."""
        disk = read_disk_space(self._file.parent)
        size = disk.reserved(self._size)
        if disk.free < 2 * size or not size or (self._file.exists() and self._file.stat().st_size):
            return
        file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, size)
        except OSError:
            os.ftruncate(file, 0)
            raise
        finally:
            os.close(file)

    def release(self) -> bool:
        """Free the space if the disk has less than that; return whether it was freed. Raises OSError."""
        if read_disk_space(self._file.parent).leaves(self._size):
            return False
        with suppress(FileNotFoundError):
            is_held = self._file.stat().st_size > 0
            os.truncate(self._file, 0)
            return is_held
        return False
