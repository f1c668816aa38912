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
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from roost.core import unix_socket
from roost.drivers.runtime.bwrap import plan, seccomp
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed

_ERROR_BYTES = 64 * 1024
_INFO_BYTES = 64 * 1024
_NPROC_PER_NAMESPACE = (5, 14)
_PRLIMIT = shutil.which("prlimit", path="/usr/bin:/bin")

_children: dict[int, subprocess.Popen[bytes]] = {}  # of all runtimes of this process, until they are reaped


@dataclass
class LaunchedBwrap:
    """A launched bwrap; `errors` is the file for its and the warden's standard error, up to 64 KiB."""

    monitor: int
    info: int
    block: int
    errors: int

    async def wait_for_child_pid(self) -> int:
        """Return the pid of the container's pid 1 once it exists. Raises RuntimeFailed with the last error of bwrap."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self.info, "rb", buffering=0)
        self.info = -1
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        received = b""
        try:
            while (more := await reader.read(_INFO_BYTES)) and len(received) < _INFO_BYTES:
                received += more
                with suppress(ValueError):  # incomplete
                    return int(json.loads(received)["child-pid"])
        finally:
            transport.close()
        reason = self.last_error_line() or "bwrap ended without an error message"
        raise RuntimeFailed(f"The container did not start: {reason}")

    def unblock(self) -> None:
        os.write(self.block, b"\n")

    def last_error_line(self) -> str:
        """Return the last line of standard error."""
        lines = os.pread(self.errors, _ERROR_BYTES, 0).strip(b"\0\n").splitlines()
        return lines[-1].decode(errors="replace")[:500] if lines else ""

    def close(self) -> None:
        for fd in (self.info, self.block, self.errors):
            if fd >= 0:
                os.close(fd)


def launch_bwrap(
    command: Callable[[plan.InheritedDescriptors], list[str]],
    files: Mapping[str, bytes],
    socket: Path,
    uid: int | None,
    limits: ContainerLimits,
) -> LaunchedBwrap:
    """Start bwrap with a descriptor for each of `files`. Blocks for milliseconds. Raises OSError and RuntimeFailed."""
    with ExitStack() as on_exit, ExitStack() as on_error:
        listener = on_exit.enter_context(unix_socket.listen_unix(socket))
        info, info_end = _pipe()
        on_error.callback(os.close, info)
        on_exit.callback(os.close, info_end)
        block_end, block = _pipe()
        on_error.callback(os.close, block)
        on_exit.callback(os.close, block_end)
        errors = _bounded_memory_file()
        on_error.callback(os.close, errors)
        contents = [_seccomp_filter(), *files.values()]
        seccomp_fd, *file_fds = memory = [_memory_file(content, on_exit) for content in contents]
        descriptors = dict(zip(files, file_fds, strict=True))
        fds = plan.InheritedDescriptors(listener.fileno(), info_end, block_end, seccomp_fd, descriptors)
        argv = command(fds)
        inherited = (fds.listener, fds.info, fds.block, *memory)
        monitor = _spawn(argv if uid is None else [*_prlimit_prefix(limits), *argv], inherited, errors, uid)
        on_error.pop_all()
    return LaunchedBwrap(monitor, info, block, errors)


def reap_monitors() -> None:
    """Reap the monitors that have ended."""
    for pid, process in list(_children.items()):
        if process.poll() is not None:
            _children.pop(pid, None)


def set_limits(pid: int, limits: ContainerLimits) -> None:
    """Set the limits of a container that has our own uid.

    Because its user namespace exists already, the limit of processes counts only those in the namespace, not the other
    processes of the user. Older kernels have one count per user, so the limit is omitted there.
    """
    rlimits = _rlimits(limits)
    if tuple(map(int, re.findall(r"\d+", platform.release())[:2])) < _NPROC_PER_NAMESPACE:
        del rlimits["nproc"]
    for kind, value in rlimits.items():
        resource.prlimit(pid, getattr(resource, f"RLIMIT_{kind.upper()}"), (value, value))


def _rlimits(limits: ContainerLimits) -> dict[str, int]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = limits.open_files if hard == resource.RLIM_INFINITY else min(limits.open_files, hard)
    return {"core": 0, "fsize": limits.file_bytes, "nofile": open_files, "nproc": limits.pids}


def _prlimit_prefix(limits: ContainerLimits) -> Sequence[str]:
    """Return a command prefix that sets the limits, because root in a container may not set them for other users."""
    if _PRLIMIT is None:
        raise RuntimeFailed("prlimit is missing: install the package util-linux")
    return [_PRLIMIT, *(f"--{kind}={value}:{value}" for kind, value in _rlimits(limits).items()), "--"]


def _spawn(argv: Sequence[str], inherited: Sequence[int], errors: int, uid: int | None) -> int:
    process = subprocess.Popen(
        argv,
        pass_fds=inherited,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        cwd="/",
        env={},
        start_new_session=True,
        umask=0o022,
        user=uid,
        group=uid,
        extra_groups=None if uid is None else (),
    )
    _children[process.pid] = process
    return process.pid


def _seccomp_filter() -> bytes:
    try:
        return seccomp.compile_filter(platform.machine())
    except KeyError:
        raise RuntimeFailed(f"There is no seccomp filter for {platform.machine()}") from None


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)


def _memory_file(content: bytes, closing: ExitStack) -> int:
    fd = os.memfd_create("roost")
    closing.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _bounded_memory_file() -> int:
    """Return a file in memory that cannot grow, because a container may write to it without end."""
    fd = os.memfd_create("roost", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _ERROR_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return fd
