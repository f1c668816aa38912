"""System calls that Python 3.11 does not offer, or only in `socket`, which takes 10 ms to import.

`python3 -S -E -I kernel.py PID` prepares the network namespace of that process, because a process with threads may not
enter a user namespace. `kernel.py UID PROGRAM ...`, started by root, adds the synthetic block to its own, gives up all
rights and becomes the program. Standard library only, without `pathlib`, whose import takes a third of that
program's time. Every call raises OSError.
"""

import ctypes
import errno
import fcntl
import os
import struct
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

_NEWNS, _NEWUSER, _NEWNET = 0x00020000, 0x10000000, 0x40000000
_BIND, _REC, _SLAVE, _DETACH = 0x1000, 0x4000, 0x80000, 2
_GET_USERNS = 0xB701
_LOWEST_PORT = "/proc/sys/net/ipv4/ip_unprivileged_port_start"

SYNTHETIC_BLOCK = (28, 77)
"""The /16 of the addresses that the warden gives to names; `docs/guides/egress.md` explains why it is public."""

# rtnetlink(7)
_AF_INET, _AF_NETLINK, _SOCK_RAW_CLOSED_ON_EXEC = 2, 16, 0x80003
_NEW_ROUTE, _REQUEST_CREATE_ACKNOWLEDGE, _ACKNOWLEDGEMENT = 24, 0x405, 2
_TABLE_LOCAL, _PROTOCOL_STATIC, _SCOPE_HOST, _TYPE_LOCAL = 255, 4, 254, 2
_DESTINATION, _INTERFACE = 1, 4

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 3, 4, 24
_SET_CREDENTIALS = {"x86_64": (116, 119, 117), "aarch64": (159, 149, 147)}  # setgroups, setresgid, setresuid

_libc = ctypes.CDLL(None, use_errno=True)


def unshare_mounts() -> None:
    """Enter a new mount namespace that still follows changes of the host. Needs CAP_SYS_ADMIN."""
    _check(_libc.unshare(_NEWNS))
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_REC | _SLAVE), None))


def mount_tmpfs(target: os.PathLike[str]) -> None:
    _check(_libc.mount(b"roost", os.fsencode(target), b"tmpfs", ctypes.c_ulong(0), b"mode=0755,size=1m"))


def bind_mount(source: os.PathLike[str], target: os.PathLike[str]) -> None:
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(_BIND | _REC), None))


def detach_mount(target: os.PathLike[str]) -> None:
    _check(_libc.umount2(os.fsencode(target), _DETACH))


@contextmanager
def acting_as(uid: int | None) -> Generator[None]:
    """Let the calling thread of a root process act as a user, if any, and start programs as it. Raises OSError.

    In the kernel, users belong to threads. Root remains the saved user, which a program does not inherit.
    """
    if uid is None:
        yield
        return
    groups, dumpable = os.getgroups(), _libc.prctl(_PR_GET_DUMPABLE)
    try:
        _set_credentials([], uid)
        yield
    finally:
        _set_credentials(groups, 0)
        _libc.prctl(_PR_SET_DUMPABLE, dumpable)  # a change of the user clears it


def _set_credentials(groups: Sequence[int], uid: int) -> None:
    set_groups, set_gid, set_uid = _SET_CREDENTIALS[os.uname().machine]
    ids = (ctypes.c_uint32 * len(groups))(*groups)
    calls = [(set_groups, len(groups), ids), (set_gid, uid, uid, 0), (set_uid, uid, uid, 0)]
    for call in calls if uid else reversed(calls):
        _check(_libc.syscall(*call))


def prepare_network(pid: int) -> None:
    """Allow all ports to all users in the network namespace of `pid`, and add the synthetic block to its loopback.

    The calling thread stays in the namespace. The ports are allowed even if adding the block fails.
    """
    _enter_network(pid)
    try:
        _add_to_loopback(bytes(SYNTHETIC_BLOCK))
    finally:
        with open(_LOWEST_PORT, "w") as file:  # noqa: PTH123 - see above
            file.write("0")


def _enter_network(pid: int) -> None:
    """Enter the network namespace; without root, its user namespace first, which requires a single-threaded process."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.geteuid() != 0:
            _check(_libc.setns(fcntl.ioctl(network, _GET_USERNS), _NEWUSER))
        _check(_libc.setns(network, _NEWNET))
    finally:
        os.close(network)


def give_up_root(uid: int) -> None:
    """Become a user without capabilities for good. Needs CAP_SETGID, CAP_SETPCAP and CAP_SETUID."""
    capability = 0
    while _libc.prctl(_PR_CAPBSET_DROP, capability) == 0:  # EINVAL behind the last
        capability += 1
    if ctypes.get_errno() != errno.EINVAL:
        raise OSError(ctypes.get_errno(), "the bounding set of capabilities stays")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _add_to_loopback(prefix: bytes) -> None:
    """Make all addresses with the prefix local, as `ip route add local PREFIX dev lo` does."""
    attributes = (_TABLE_LOCAL, _PROTOCOL_STATIC, _SCOPE_HOST, _TYPE_LOCAL)
    route = struct.pack("=8BI", _AF_INET, len(prefix) * 8, 0, 0, *attributes, 0)
    route += struct.pack("=HH4s", 8, _DESTINATION, prefix)
    route += struct.pack("=HHI", 8, _INTERFACE, _libc.if_nametoindex(b"lo"))
    header = struct.pack("=IHHII", 16 + len(route), _NEW_ROUTE, _REQUEST_CREATE_ACKNOWLEDGE, 1, 0)
    netlink = _check(_libc.socket(_AF_NETLINK, _SOCK_RAW_CLOSED_ON_EXEC, 0))
    try:
        os.write(netlink, header + route)
        kind, error = struct.unpack_from("=4xH10xi", os.read(netlink, 4096))
    finally:
        os.close(netlink)
    if kind != _ACKNOWLEDGEMENT or error:
        raise OSError(-error, os.strerror(-error))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    number, *command = sys.argv[1:]
    if command:
        with suppress(OSError):  # names get loopback addresses then, as the probe tells
            _add_to_loopback(bytes(SYNTHETIC_BLOCK))
        give_up_root(int(number))
        os.execv(command[0], command)  # noqa: S606 - the caller's
    else:
        prepare_network(int(number))
