"""The few system calls that Python 3.11 has no name for. A program too, because a process with threads may not enter a
user namespace: `python3 -S -E -I kernel.py PID` opens the low ports of that process's network namespace.

Standard library only. Refuses nothing itself: every call raises OSError as the kernel says it.
"""

import ctypes
import fcntl
import os
import sys
from pathlib import Path

_NEWNS, _NEWUSER, _NEWNET = 0x00020000, 0x10000000, 0x40000000
_BIND, _REC, _SLAVE, _DETACH = 0x1000, 0x4000, 0x80000, 2
_GET_USERNS = 0xB701
_LOWEST_PORT = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")

_libc = ctypes.CDLL(None, use_errno=True)


def leave_mounts() -> None:
    """Give the calling thread mounts of its own, that still follow the host's. Needs CAP_SYS_ADMIN."""
    _check(_libc.unshare(_NEWNS))
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_REC | _SLAVE), None))


def mount_tmpfs(target: Path) -> None:
    _check(_libc.mount(b"roost", os.fsencode(target), b"tmpfs", ctypes.c_ulong(0), b"mode=0755,size=1m"))


def bind(source: Path, target: Path) -> None:
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(_BIND | _REC), None))


def detach(target: Path) -> None:
    _check(_libc.umount2(os.fsencode(target), _DETACH))


def open_low_ports(pid: int) -> None:
    """Let every user bind every port in the network namespace of `pid`; the calling thread stays there.

    Without root the way leads through the user namespace that owns it, which only a process of one thread can enter.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.geteuid() != 0:
            _check(_libc.setns(fcntl.ioctl(network, _GET_USERNS), _NEWUSER))
        _check(_libc.setns(network, _NEWNET))
        _LOWEST_PORT.write_text("0")
    finally:
        os.close(network)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    open_low_ports(int(sys.argv[1]))
