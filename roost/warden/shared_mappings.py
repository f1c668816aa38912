"""Files of a tree that processes of the container can change through memory, of which inotify(7) reports nothing."""

from __future__ import annotations

import os

from .light_imports import suppress


def has_shared_mapping(root: str) -> bool:
    """Return whether a process has, or may have, a file below the root mapped to write to it (proc_pid_maps(5)).

    Engines map their databases, which are in the home and tell nothing about the workspace.
    """
    prefix = os.fsencode(os.path.realpath(root)) + b"/"
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - pathlib is not loaded here
        try:
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/maps", "rb") as maps:  # noqa: PTH123 - as above
                if any(_is_shared_file(line, prefix) for line in maps):
                    return True
        except OSError:  # a process that hides its memory
            return True
    return False


def _is_shared_file(line: bytes, prefix: bytes) -> bool:
    permissions = line[line.find(b" ") + 1 :][:4]
    if permissions[1:2] != b"w" or permissions[3:4] != b"s":
        return False
    name = line.rstrip().split(None, 5)[5:]
    return bool(name) and name[0].startswith(prefix)
