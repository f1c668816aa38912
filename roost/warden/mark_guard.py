"""Seccomp filter (seccomp(2)) that denies changes of the real-time limit, which marks the processes of a command.

Without it a process could raise its soft limit, and with a session of its own survive the timeout of its command. The
filter is on top of the container's, which denies the second ABI of x86-64.
"""

from __future__ import annotations

import ctypes
import os
import struct

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, DENY = 0x7FFF0000, 0x00050001  # EPERM
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
RLIMIT_RTTIME = 15
CALLS = {"x86_64": (0xC000003E, 160, 302), "aarch64": (0xC00000B7, 164, 261)}  # audit number, setrlimit, prlimit64


def deny_mark_changes() -> None:
    """Install the filter for the calling thread and its children; on other architectures there is none.

    Raises OSError.
    """
    if (machine := os.uname().machine) in CALLS:
        code = _compile_filter(*CALLS[machine])
        buffer = ctypes.create_string_buffer(code)
        program = struct.pack("HP", len(code) // 8, ctypes.addressof(buffer))
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
            raise OSError(ctypes.get_errno(), "the filter of limits cannot be installed")


def _compile_filter(audit: int, setrlimit: int, prlimit: int) -> bytes:
    """Return the filter; it allows `prlimit` without a new limit, which `getrlimit` uses."""
    allow, deny = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, DENY)
    code = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, audit),
        allow,
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 4, setrlimit),
        (LOAD, 0, 0, ARGUMENTS),
        (EQUAL, 0, 1, RLIMIT_RTTIME),
        deny,
        allow,
        (EQUAL, 1, 0, prlimit),
        allow,
        (LOAD, 0, 0, ARGUMENTS + 8),
        (EQUAL, 1, 0, RLIMIT_RTTIME),
        allow,
        (LOAD, 0, 0, ARGUMENTS + 16),
        (EQUAL, 0, 2, 0),
        (LOAD, 0, 0, ARGUMENTS + 20),
        (EQUAL, 1, 0, 0),
        deny,
        allow,
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
