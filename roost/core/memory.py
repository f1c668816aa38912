"""Memory of this machine and of this process, from `/proc`."""

import os
from dataclasses import dataclass
from pathlib import Path

_MEMORY, _PROCESS = Path("/proc/meminfo"), Path("/proc/self/statm")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of memory: of the machine, of it without swapping available, and resident of this process."""

    total: int
    available: int
    process: int


def read_memory_use() -> MemoryUse:
    """Return the present use of memory. Raises OSError."""
    machine = parse_meminfo(_MEMORY.read_text())
    pages = int(_PROCESS.read_text().split()[1])
    return MemoryUse(machine.get("MemTotal", 0), machine.get("MemAvailable", 0), pages * os.sysconf("SC_PAGE_SIZE"))


def parse_meminfo(text: str) -> dict[str, int]:
    """Return the values of `/proc/meminfo` in bytes, by name."""
    fields = (line.split() for line in text.splitlines())
    return {field[0].rstrip(":"): int(field[1]) * 1024 for field in fields if field[2:] == ["kB"]}
