"""Launch of bwrap: its descriptors, user and limits.

The result is a container in which nothing has run yet. bwrap inherits no descriptor of the server, not even its output.
"""

import asyncio
import fcntl
import json
import os
import platform
import re
import resource
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache

from roost.drivers.runtime.bwrap import kernel, plan, seccomp
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed

_ERROR_BYTES = 64 * 1024
_INFO_BYTES = 64 * 1024
_NPROC_PER_NAMESPACE = (5, 14)

_children: dict[int, subprocess.Popen[bytes]] = {}  # of all runtimes of this process, until they are reaped


@dataclass
class LaunchedBwrap:
    """A launched bwrap; `errors` is the file for its and the warden's standard error, up to 64 KiB.

    uid: the user of the container, None if it is ours. limits: still to be set.
    """

    monitor: int
    info: socket.socket
    block: int
    errors: int
    uid: int | None
    limits: ContainerLimits

    async def wait_for_child_pid(self) -> int:
        """Return the pid of the container's pid 1 once it exists. Raises RuntimeFailed with the last error of bwrap."""
        loop = asyncio.get_running_loop()
        received = b""
        # A socket, because uvloop closes the descriptor of a pipe twice, the second time perhaps a new one of a thread.
        while (more := await loop.sock_recv(self.info, _INFO_BYTES)) and len(received) < _INFO_BYTES:
            received += more
            with suppress(ValueError):  # incomplete
                return int(json.loads(received)["child-pid"])
        reason = self.last_error_line() or "bwrap ended without an error message"
        raise RuntimeFailed(f"The container did not start: {reason}")

    def unblock(self) -> None:
        os.write(self.block, b"\n")

    def last_error_line(self) -> str:
        """Return the last line of standard error."""
        return read_last_line(self.errors)

    def close(self) -> None:
        self.info.close()
        for fd in (self.block, self.errors):
            os.close(fd)


def launch_bwrap(
    command: Callable[[plan.InheritedDescriptors], list[str]],
    files: Mapping[str, bytes],
    connection: int,
    uid: int | None,
    limits: ContainerLimits,
    output: int | None = None,
) -> LaunchedBwrap:
    """Start bwrap with the descriptor of a `connection` and one for each of `files`.

    With `output` as its standard output, it has the connection as its standard input.
    Blocks for milliseconds. Raises OSError and RuntimeFailed.
    """
    with ExitStack() as on_exit, ExitStack() as on_error:
        info, info_end = socket.socketpair()
        on_error.enter_context(info)
        on_exit.enter_context(info_end)
        info.setblocking(False)
        block_end, block = os.pipe2(os.O_CLOEXEC)
        on_error.callback(os.close, block)
        on_exit.callback(os.close, block_end)
        errors = create_error_file()
        on_error.callback(os.close, errors)
        contents = [_seccomp_filter(), *files.values()]
        seccomp_fd, *file_fds = memory = [_memory_file(content, on_exit) for content in contents]
        descriptors = dict(zip(files, file_fds, strict=True))
        fds = plan.InheritedDescriptors(connection, info_end.fileno(), block_end, seccomp_fd, descriptors)
        argv = command(fds)
        inherited = (fds.socket, fds.info, fds.block, *memory)
        stdin, stdout = (subprocess.DEVNULL, subprocess.DEVNULL) if output is None else (connection, output)
        with kernel.acting_as(
            uid
        ):  # Popen's own change of the user forks, which copies the page tables of a server for 5 ms
            monitor = subprocess.Popen(
                argv,
                pass_fds=inherited,
                stdin=stdin,
                stdout=stdout,
                stderr=errors,
                cwd="/",
                env={},
                start_new_session=True,
                umask=0o022,
            )
        _children[monitor.pid] = monitor
        on_error.pop_all()
    return LaunchedBwrap(monitor.pid, info, block, errors, uid, limits)


def reap_monitors() -> None:
    """Reap the monitors that have ended."""
    for pid, process in list(_children.items()):
        if process.poll() is not None:
            _children.pop(pid, None)


def set_limits(pid: int, limits: ContainerLimits, uid: int | None) -> None:
    """Set the limits of a container that has this uid, None if it is ours.

    Because its user namespace exists already, the limit of processes counts only those in the namespace, not the other
    processes of the user. Older kernels have one count per user, so the limit is omitted there for our own.
    """
    rlimits = _rlimits(limits)
    if uid is None and tuple(map(int, re.findall(r"\d+", platform.release())[:2])) < _NPROC_PER_NAMESPACE:
        del rlimits["nproc"]
    with kernel.acting_as(uid):  # root in a container may not set limits of other users
        for kind, value in rlimits.items():
            resource.prlimit(pid, getattr(resource, f"RLIMIT_{kind.upper()}"), (value, value))


def _rlimits(limits: ContainerLimits) -> dict[str, int]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = limits.open_files if hard == resource.RLIM_INFINITY else min(limits.open_files, hard)
    files = {"core": 0, "fsize": limits.file_bytes, "nofile": open_files}
    return {**files, "nproc": limits.pids, "nice": 0, "rtprio": 0}  # no program may raise its priority


@cache
def _seccomp_filter() -> bytes:
    try:
        return seccomp.compile_filter(platform.machine())
    except KeyError:
        raise RuntimeFailed(f"There is no seccomp filter for {platform.machine()}") from None


def _memory_file(content: bytes, closing: ExitStack) -> int:
    fd = os.memfd_create("roost")
    closing.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def create_error_file() -> int:
    """Return a file in memory for standard error, which cannot grow, because a container may write without end."""
    fd = os.memfd_create("roost", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _ERROR_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return fd


def read_last_line(errors: int) -> str:
    """Return the last line of a file for standard error."""
    lines = os.pread(errors, _ERROR_BYTES, 0).strip(b"\0\n").splitlines()
    return lines[-1].decode(errors="replace")[:500] if lines else ""
