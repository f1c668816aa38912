"""Memory of this machine and of this process, from `/proc`."""

import os
from dataclasses import dataclass
from pathlib import Path

_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of memory: of the machine, of it without swapping available, and resident of this process."""

    total: int
    available: int
    process: int


def read_memory_use() -> MemoryUse:
    """Return the present use of memory. Raises OSError."""
    machine = parse_meminfo(_MEMORY.read_text())
    return MemoryUse(machine.get("MemTotal", 0), machine.get("MemAvailable", 0), read_resident_bytes("self"))


def read_resident_bytes(pid: int | str) -> int:
    """Return the resident memory of a process. Raises OSError, for one that has ended too."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def parse_meminfo(text: str) -> dict[str, int]:
    """Return the values of `/proc/meminfo` in bytes, by name."""
    fields = (line.split() for line in text.splitlines())
    return {field[0].rstrip(":"): int(field[1]) * 1024 for field in fields if field[2:] == ["kB"]}
