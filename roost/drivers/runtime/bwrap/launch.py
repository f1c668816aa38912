"""The start of one bwrap: what it inherits, its identity, its limits. It ends with a container that is built and waits:
nothing of it has run yet. Refuses to hand it any descriptor of the server, its output streams among them.
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
_COUNTS_BY_NAMESPACE = (5, 14)
_PRLIMIT = shutil.which("prlimit", path="/usr/bin:/bin")

_children: dict[int, subprocess.Popen[bytes]] = {}  # ours until they are reaped, whichever Runtime started them


@dataclass
class LaunchedBwrap:
    """A bwrap that was started; `errors` is what it and the warden write to, up to 64 KiB."""

    monitor: int
    info: int
    block: int
    errors: int

    async def child(self) -> int:
        """The pid of the container's pid 1, once it is built. Raises RuntimeFailed with what bwrap had to say."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self.info, "rb", buffering=0)
        self.info = -1
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        told = b""
        try:
            while (more := await reader.read(_INFO_BYTES)) and len(told) < _INFO_BYTES:
                told += more
                with suppress(ValueError):  # the half of it
                    return int(json.loads(told)["child-pid"])
        finally:
            transport.close()
        raise RuntimeFailed(f"The container did not start: {self.last_error_line() or 'bwrap ended without a word'}")

    def unblock(self) -> None:
        os.write(self.block, b"\n")

    def last_error_line(self) -> str:
        """The last line on standard error."""
        lines = os.pread(self.errors, _ERROR_BYTES, 0).strip(b"\0\n").splitlines()
        return lines[-1].decode(errors="replace")[:500] if lines else ""

    def close(self) -> None:
        for fd in (self.info, self.block, self.errors):
            if fd >= 0:
                os.close(fd)


def launch(
    command: Callable[[plan.InheritedDescriptors], list[str]],
    files: Mapping[str, bytes],
    socket: Path,
    uid: int | None,
    limits: ContainerLimits,
) -> LaunchedBwrap:
    """Start bwrap with a descriptor for each of `files`. Blocks for milliseconds. Raises OSError and RuntimeFailed."""
    with ExitStack() as theirs, ExitStack() as ours:
        listener = theirs.enter_context(unix_socket.listen_unix(socket))
        info, info_end = _pipe()
        ours.callback(os.close, info)
        theirs.callback(os.close, info_end)
        block_end, block = _pipe()
        ours.callback(os.close, block)
        theirs.callback(os.close, block_end)
        errors = _bounded_file()
        ours.callback(os.close, errors)
        contents = [_filter(), *files.values()]
        seccomp_fd, *file_fds = memory = [_file(content, theirs) for content in contents]
        descriptors = dict(zip(files, file_fds, strict=True))
        fds = plan.InheritedDescriptors(listener.fileno(), info_end, block_end, seccomp_fd, descriptors)
        argv = command(fds)
        inherited = (fds.listener, fds.info, fds.block, *memory)
        monitor = _spawn(argv if uid is None else [*_limited(limits), *argv], inherited, errors, uid)
        ours.pop_all()
    return LaunchedBwrap(monitor, info, block, errors)


def reap() -> None:
    """Take the exit codes of monitors that have ended."""
    for pid, process in list(_children.items()):
        if process.poll() is not None:
            _children.pop(pid, None)


def limit(pid: int, limits: ContainerLimits) -> None:
    """Set the limits of a container that has our own uid. Set after its user namespace was made, the limit of processes
    counts those in there alone, and not what else the user runs. An older kernel has one count, so it gets no limit.
    """
    wanted = _rlimits(limits)
    if tuple(map(int, re.findall(r"\d+", platform.release())[:2])) < _COUNTS_BY_NAMESPACE:
        del wanted["nproc"]
    for kind, value in wanted.items():
        resource.prlimit(pid, getattr(resource, f"RLIMIT_{kind.upper()}"), (value, value))


def _rlimits(limits: ContainerLimits) -> dict[str, int]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = limits.open_files if hard == resource.RLIM_INFINITY else min(limits.open_files, hard)
    return {"core": 0, "fsize": limits.file_bytes, "nofile": open_files, "nproc": limits.pids}


def _limited(limits: ContainerLimits) -> Sequence[str]:
    """A prefix that sets the limits: in containers root may not set them for a process of another user."""
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


def _filter() -> bytes:
    try:
        return seccomp.program(platform.machine())
    except KeyError:
        raise RuntimeFailed(f"There is no filter of system calls for {platform.machine()}") from None


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)


def _file(content: bytes, closing: ExitStack) -> int:
    fd = os.memfd_create("roost")
    closing.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _bounded_file() -> int:
    """A file in memory that cannot grow, for nobody reads it later and a container may write as long as it likes."""
    fd = os.memfd_create("roost", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _ERROR_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return fd
