"""Client of a container's warden (`docs/builders/warden-protocol.md`), with one connection per call."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from roost.core.machine.unix_socket import Stream
from roost.warden_client.connection import (
    CALL_SECONDS,
    CHUNK_BYTES,
    Frame,
    Json,
    WardenConnector,
    read_frames,
    reply_deadline,
    reply_errors,
    run_meanwhile,
    send_frames,
)
from roost.warden_client.errors import WardenFailed
from roost.warden_client.files import FolderEntry, Root, WardenFiles, parse_folder_entry, parse_time
from roost.warden_client.terminal import WardenTerminals
from roost.warden_client.tree import WardenTree

_SPARE_SECONDS = 15.0
_BYTES_PER_SECOND = 1 << 20  # slower transfers fail


@dataclass(frozen=True)
class WardenStatus:
    pid: int
    uptime: float


@dataclass(frozen=True)
class ExecResult:
    """Result of a command; `exit_code` is 124 after a time-out, 128 + n after signal n, `truncated`: output was cut."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    timed_out: bool
    truncated: bool


@dataclass(frozen=True)
class ExecOutput:
    """Chunk of output; the last one has the stream "exit", no data and the exit code."""

    stream: Literal["stdout", "stderr", "exit"]
    data: bytes
    exit_code: int | None = None
    timed_out: bool = False


@dataclass(frozen=True)
class ProcessStatus:
    state: Literal["running", "backoff", "exited"]
    pid: int | None
    exit_code: int | None
    started_at: datetime
    restarts: int


@dataclass(frozen=True)
class LogLine:
    time: datetime
    source: str
    text: str


class WardenClient:
    """Client of one warden; every call may also raise ContainerNotRunning, WardenBusy and WardenFailed."""

    def __init__(self, connect: Callable[[], Awaitable[Stream]]) -> None:
        self._warden = WardenConnector(connect)
        self.files = WardenFiles(self._warden)
        self.tree = WardenTree(self._warden)
        self.terminals = WardenTerminals(self._warden)

    async def ping(self) -> WardenStatus:
        async with self._warden.request("ping") as (reply, _), reply_deadline():
            return WardenStatus(int(reply["pid"]), float(reply["uptime"]))

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60.0,  # noqa: ASYNC109 - enforced by the warden
        output_limit: int = 1 << 20,
        stdin: bytes = b"",
    ) -> ExecResult:
        """Run a command to its end; output of a stream beyond `output_limit` is dropped. Raises ExecRefused.

        A time-out kills the command with its descendants; otherwise it may leave background processes.
        """
        request = {"argv": list(argv), "cwd": cwd, "env": dict(env or {}), "timeout": timeout, "limit": output_limit}
        kept = {b"o": bytearray(), b"e": bytearray()}
        source = _split_chunks(stdin) if stdin else None
        async with self._command(request, source, timeout) as frames:
            async for kind, data in frames:
                if kind == b"x":
                    return _parse_exec_result(data, bytes(kept[b"o"]), bytes(kept[b"e"]))
                if kind in kept:
                    kept[kind] += data[: output_limit - len(kept[kind])]
        raise WardenFailed

    @asynccontextmanager
    async def exec_stream(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60.0,  # noqa: ASYNC109 - enforced by the warden
        stdin: AsyncIterable[bytes] | None = None,
    ) -> AsyncGenerator[AsyncIterator[ExecOutput]]:
        """Run as `exec`, but yield output as it comes, without a limit; leaving the context kills the command.

        Input is read as the command reads it; the end of `stdin` is the end of the command's input.
        """
        request = {"argv": list(argv), "cwd": cwd, "env": dict(env or {}), "timeout": timeout}
        async with self._command(request, stdin, timeout) as frames, aclosing(_parse_output(frames)) as outputs:
            yield outputs

    async def dial(self, port: int) -> Stream:
        """Open a byte stream to a TCP port on the container's loopback; the caller closes it. Raises DialRefused."""
        _, stream = await self._warden.send_request("dial", {"port": port}, CALL_SECONDS)
        return stream

    async def read(self, path: str, *, root: Root = "workspace", limit: int) -> bytes:
        """Read a regular file. Raises PathRefused, WardenFileNotFound, WardenNotAFile, WardenFileTooLarge."""
        content = bytearray()
        seconds = CALL_SECONDS + limit / _BYTES_PER_SECOND
        async with (
            self._warden.request("read", path=path, root=root, limit=limit) as (_, (reader, _)),
            reply_deadline(seconds),
        ):
            async for _, data in read_frames(reader):
                content += data
                if len(content) > limit:
                    raise WardenFailed
        return bytes(content)

    async def write(self, path: str, data: bytes, *, root: Root = "workspace", mode: int = 0o644) -> None:
        """Write a file atomically and durably; creates folders, replaces links. Raises PathRefused, WardenNotAFile."""
        seconds = CALL_SECONDS + len(data) / _BYTES_PER_SECOND
        request = {"path": path, "root": root, "mode": mode, "size": len(data)}
        async with self._warden.request("write", **request) as (_, (reader, writer)), reply_deadline(seconds):
            for start in range(0, len(data), CHUNK_BYTES):
                writer.write(data[start : start + CHUNK_BYTES])
                await writer.drain()
            async for _ in read_frames(reader):
                raise WardenFailed

    async def list(self, path: str = ".", *, root: Root = "workspace") -> Sequence[FolderEntry]:
        """Return at most 10,000 entries by name. Raises PathRefused, WardenFileNotFound and WardenNotAFile."""
        return await self._warden.read_items(_parse_entry, "list", path=path, root=root)

    async def start(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], restart: bool = True) -> None:
        """Start a supervised process in a session of its own. Raises ExecRefused and ProcessAlreadyRunning."""
        async with self._warden.request("start", name=name, argv=[*argv], env=dict(env), restart=restart):
            return

    async def stop(self, name: str, grace: float = 10.0) -> None:
        """Send SIGTERM, after `grace` seconds SIGKILL; return when all its processes are gone. Idempotent."""
        async with self._warden.request("stop", grace + _SPARE_SECONDS, name=name, grace=grace):
            return

    async def processes(self) -> Mapping[str, ProcessStatus]:
        async with self._warden.request("processes") as (reply, _), reply_deadline():
            return {str(name): _parse_process(view) for name, view in reply["processes"].items()}

    async def logs(self, *, source: str | None = None, limit: int = 100) -> Sequence[LogLine]:
        """Return the last lines, oldest first."""
        return await self._warden.read_items(_parse_line, "logs", source=source, limit=limit)

    async def follow(self, *, source: str | None = None, last: int = 0) -> AsyncGenerator[LogLine]:
        """Yield the last `last` lines and then new ones without a gap, until the consumer closes it.

        A consumer that falls too far behind gets WardenFailed.
        """
        async with self._warden.request("follow", source=source, last=last) as (_, (reader, _)):
            async for _, data in read_frames(reader, idle=None):
                with reply_errors():
                    lines = [_parse_line(item) for item in json.loads(data)]
                for line in lines:
                    yield line

    @asynccontextmanager
    async def _command(
        self, request: Json, stdin: AsyncIterable[bytes] | None, seconds: float
    ) -> AsyncGenerator[AsyncGenerator[Frame]]:
        until = asyncio.get_running_loop().time() + seconds + _SPARE_SECONDS
        async with self._warden.request("exec", **request, stdin=stdin is not None) as (_, (reader, writer)):
            sending = None if stdin is None else send_frames(writer, b"i", stdin)
            async with run_meanwhile(sending), aclosing(read_frames(reader, until=until, last=True)) as frames:
                yield frames


async def _split_chunks(data: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


async def _parse_output(frames: AsyncIterable[Frame]) -> AsyncGenerator[ExecOutput]:
    async for kind, data in frames:
        if kind == b"x":
            end = _parse_exec_result(data)
            yield ExecOutput("exit", b"", end.exit_code, end.timed_out)
        elif kind in {b"o", b"e"}:
            yield ExecOutput("stdout" if kind == b"o" else "stderr", data)


def _parse_exec_result(data: bytes, stdout: bytes = b"", stderr: bytes = b"") -> ExecResult:
    with reply_errors():
        end = json.loads(data)
        return ExecResult(stdout, stderr, int(end["code"]), bool(end["timedOut"]), bool(end["truncated"]))


def _parse_entry(item: Any) -> FolderEntry:
    entry = parse_folder_entry(item)
    if "/" in entry.name:
        raise WardenFailed
    return entry


def _parse_process(view: Any) -> ProcessStatus:
    if view["state"] not in {"running", "backoff", "exited"}:
        raise WardenFailed
    pid, code = (None if view[key] is None else int(view[key]) for key in ("pid", "exitCode"))
    return ProcessStatus(view["state"], pid, code, parse_time(view["startedAt"]), int(view["restarts"]))


def _parse_line(item: Any) -> LogLine:
    moment, source, text = item
    return LogLine(parse_time(moment), str(source), str(text))
