"""Check of the free space on the disk of the data folder."""

import os
from pathlib import Path

from roost.core.problem import ServiceUnavailable

_NEEDED_BYTES = 64 * 1024**2


class DiskFull(ServiceUnavailable):
    message = "The disk is full"


def check_free_space(folder: Path) -> None:
    """Raise DiskFull if the folder's disk is read-only or has less than 64 MiB for the server."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if disk.f_flag & os.ST_RDONLY or free < _NEEDED_BYTES:
        raise DiskFull(f"{folder} is on a read-only disk, or has only {free // 1024**2} MiB free")
