"""Measures the folders of agents on a disk of this machine, and what their containers write.

An agent owns what is counted: it swaps folders for links meanwhile, nests them without end and takes away permissions.
So each folder is opened by its descriptor, never by a path or through a link, and the count is bounded.
"""

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from roost.core import clock
from roost.core.machine.disk_space import DiskSpace, read_disk_space
from roost.core.machine.threads import run_in_daemon_thread
from roost.drivers.runtime.bwrap.agent_paths import validate_name
from roost.drivers.runtime.bwrap.record import find_tree, list_pids, read_stat
from roost.drivers.runtime.contract import Container, DiskMeter, DiskUsage

_MAX_ENTRIES, _MAX_DEPTH = 2_000_000, 100
_BLOCK_BYTES = 512  # of `st_blocks`, whatever the file system's own are
_ENTRIES_PER_PAUSE, _PAUSE_FACTOR = 500, 4.0
_PROC = Path("/proc")


class HostDiskMeter(DiskMeter):
    """Meter of `agents/` in a data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_space(self) -> DiskSpace:
        agents = self._folder / "agents"  # may be a file system of its own
        return read_disk_space(agents if agents.exists() else self._folder)

    async def measure(self, agent_id: str, *, paced: bool) -> DiskUsage:
        folder = self._folder / "agents" / validate_name(agent_id)
        return await run_in_daemon_thread(lambda: measure_folder(folder, _PAUSE_FACTOR if paced else 0.0))

    def written_bytes(self, containers: Sequence[Container]) -> Mapping[str, int]:
        parents = {pid: int(fields[1]) for pid in list_pids() if len(fields := read_stat(pid)) > 1}
        written: dict[str, int] = {}
        for container in containers:
            tree = find_tree(container.pid, parents) if container.pid else ()
            written[container.agent_id] = sum(map(_written_by, tree))
        return written


def measure_folder(folder: Path, pause_factor: float) -> DiskUsage:
    """Count the space of a folder with all in it, on its file system; a missing folder has none.

    After each few hundred entries the thread sleeps `pause_factor` times as long as they took. Raises OSError.
    """
    size = entries = 0
    is_complete = True
    counted: set[int] = set()  # files with several names
    walk: list[_OpenFolder] = []
    began = clock.monotonic_seconds()
    try:
        with suppress(FileNotFoundError):
            walk.append(_OpenFolder(str(folder), None))
        while walk:
            if (entry := next(walk[-1].entries, None)) is None:
                walk.pop().close()
                continue
            entries += 1
            if entries > _MAX_ENTRIES:
                return DiskUsage(size, is_complete=False)
            if pause_factor and entries % _ENTRIES_PER_PAUSE == 0:
                time.sleep((clock.monotonic_seconds() - began) * pause_factor)
                began = clock.monotonic_seconds()
            try:
                found = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(found.st_mode)
                if is_folder or found.st_nlink == 1 or found.st_ino not in counted:
                    size += found.st_blocks * _BLOCK_BYTES
                if is_folder and len(walk) < _MAX_DEPTH:
                    walk.append(_OpenFolder(entry.name, walk[-1].fd))
                elif is_folder:
                    is_complete = False
                elif found.st_nlink > 1:
                    counted.add(found.st_ino)
            except (FileNotFoundError, NotADirectoryError):  # removed or replaced meanwhile
                continue
    finally:
        for opened in walk:
            opened.close()
    return DiskUsage(size, is_complete)


class _OpenFolder:
    """An open folder and the entries that are left of it. Raises NotADirectoryError for anything else."""

    def __init__(self, name: str, parent: int | None) -> None:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            path = f"/proc/self/fd/{handle}"
            # Files could be hidden in a folder without permissions.
            if not os.access(path, os.R_OK | os.X_OK, effective_ids=True):
                Path(path).chmod(stat.S_IMODE(os.fstat(handle).st_mode) | stat.S_IRUSR | stat.S_IXUSR)
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(handle)
        self._scan = os.scandir(self.fd)
        self.entries: Iterator[os.DirEntry[str]] = self._scan

    def close(self) -> None:
        self._scan.close()
        os.close(self.fd)


def _written_by(pid: int) -> int:
    """Return the bytes that a process and its reaped children have written to disks, 0 if they cannot be known."""
    try:
        lines = (_PROC / str(pid) / "io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)
