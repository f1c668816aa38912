"""Loop of a program in a sandbox that answers each request in a process of its own, with limited memory and CPU time.

A request is a line of JSON with `size`, and `size` bytes of source. An answer is a line with its size and that many
bytes. The program itself never reads a source, so that no source can affect the next one. Only programs in sandboxes
import this module: it ends all other processes that it can see.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Handler = Callable[[dict[str, Any], bytes], bytes]
"""Returns the answer to a request and its source."""
_SET_DUMPABLE = 4  # PR_SET_DUMPABLE, linux/prctl.h


@dataclass(frozen=True)
class RequestLimits:
    """Limits of the process of one request."""

    memory_bytes: int
    cpu_seconds: int
    answer_bytes: int


def serve_requests(connection: socket.socket, handle: Handler, limits: RequestLimits) -> None:
    """Answer requests, each in a child that was forked before it came, until the server closes the connection."""
    assert os.getpid() == 1 or not _may_signal(os.getppid()), "not in a sandbox"  # `_end_children` would end others
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)  # no child may trace this process
    gc.freeze()  # else each child copies the memory of all objects as soon as it collects garbage
    connection.sendall(b"\n")
    with suppress(OSError):  # the server closed the connection
        while True:
            answer = _answer_in_child(connection, handle, limits)
            connection.sendall(b"%d\n" % len(answer))
            connection.sendall(answer)
            _end_children()


def _answer_in_child(connection: socket.socket, handle: Handler, limits: RequestLimits) -> bytes:
    """Return the answer to a request, empty if the child ended without one or answered too much."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        with suppress(BaseException), os.fdopen(writer, "wb") as out:
            os.close(reader)
            _limit_resources(limits)
            with connection, connection.makefile("rb") as stream:  # closed before the source is read
                request = json.loads(stream.readline())
                source = stream.read(request["size"])
            out.write(handle(request, source))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read(limits.answer_bytes + 1)
    return answer if len(answer) <= limits.answer_bytes else b""


def _end_children() -> None:
    """End all other processes of the sandbox, at any depth."""
    with suppress(ProcessLookupError, PermissionError):  # where no signal is allowed, the sandbox ends what is left
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    return True


def _limit_resources(limits: RequestLimits) -> None:
    for kind, limit in (("AS", limits.memory_bytes), ("CPU", limits.cpu_seconds), ("FSIZE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (limit, limit))
