"""Run a program in its own network namespace, where the kernel allows it, so that all loopback ports are free.

A script of the fake runtime: `loopback_namespace.py ARGV_AS_JSON LAST_ARGUMENT LAST_ARGUMENT_WITHOUT_NAMESPACE`.
Root needs no user namespace; another user gets one that keeps the uid.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def enter_namespace() -> bool:
    """Enter a new network namespace with a loopback; return False if the kernel does not allow one."""
    uid, gid = os.getuid(), os.getgid()
    if ctypes.CDLL(None).unshare(CLONE_NEWNET | (CLONE_NEWUSER if uid else 0)) != 0:
        return False
    try:
        if uid:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    except OSError as problem:
        sys.exit(f"cannot set up the loopback of a network namespace: {problem}")
    return True


if __name__ == "__main__":
    program: list[str] = json.loads(sys.argv[1])
    os.execv(program[0], [*program, sys.argv[2] if enter_namespace() else sys.argv[3]])  # noqa: S606 - there is no shell
