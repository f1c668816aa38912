"""Check of the free space on the disk of the data folder."""

from pathlib import Path

from roost.core.machine.disk_space import READY_RESERVE, read_disk_space
from roost.core.problem import ServiceUnavailable


class DiskFull(ServiceUnavailable):
    message = "The disk is full"


def check_free_space(folder: Path) -> None:
    """Raise DiskFull if the folder's disk is read-only or has less than 64 MiB for the server."""
    disk = read_disk_space(folder)
    if disk.is_read_only or disk.free < READY_RESERVE:
        raise DiskFull(f"{folder} is on a read-only disk, or has only {disk.free // 1024**2} MiB free")
