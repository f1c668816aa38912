"""Files that processes of the container can change through memory, of which inotify(7) reports nothing."""

from __future__ import annotations

import os

from .light_imports import suppress

NO_FILES = (b"/dev/", b"/memfd:", b"/SYSV", b"anon_inode:", b"/anon_hugepage", b"[")
"""Beginnings of the names of memory that is no file of a tree."""


def has_shared_mapping() -> bool:
    """Return whether a process has, or may have, a file mapped to write to it (proc_pid_maps(5))."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - pathlib is not loaded here
        try:
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/maps", "rb") as maps:  # noqa: PTH123 - as above
                if any(map(_is_shared_file, maps)):
                    return True
        except OSError:  # a process that hides its memory
            return True
    return False


def _is_shared_file(line: bytes) -> bool:
    permissions = line[line.find(b" ") + 1 :][:4]
    if permissions[1:2] != b"w" or permissions[3:4] != b"s":
        return False
    name = line.rstrip().split(None, 5)[5:]
    return bool(name) and not name[0].startswith(NO_FILES)
