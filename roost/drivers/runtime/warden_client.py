"""Client of a container's warden (`docs/builders/warden-protocol.md`), with one connection per call.

An agent may have taken over its container, so replies are not trusted: every length is bounded, every step has a
deadline, and replies are only data.
"""

import asyncio
import json
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from roost.drivers.runtime.contract import ContainerNotRunning, Stream
from roost.drivers.runtime.warden_errors import (
    PROBLEMS,
    ExecRefused,
    PathRefused,
    WardenDisconnected,
    WardenFailed,
)

Root = Literal["workspace", "home"]
Json = dict[str, Any]
T = TypeVar("T")

_HEADER = struct.Struct("!cI")
_FRAME_BYTES = 1 << 20
_CHUNK_BYTES = 256 * 1024
_ITEMS, _ITEMS_BYTES = 10_000, 32 << 20
_STEP_SECONDS, _CALL_SECONDS, _SPARE_SECONDS = 10.0, 10.0, 15.0
_REPLY_ERRORS = (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
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
class FolderEntry:
    """Entry of a folder; bytes of `name` that are not UTF-8 are lone surrogates (`os.fsdecode`)."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    mode: int
    modified_at: datetime


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
        self._connect = connect

    async def ping(self) -> WardenStatus:
        async with self._request("ping") as (reply, _), _deadline():
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
        async with aclosing(self._command(request, stdin, timeout)) as frames:
            async for kind, data in frames:
                if kind == b"x":
                    return _parse_exec_result(data, bytes(kept[b"o"]), bytes(kept[b"e"]))
                if kind in kept:
                    kept[kind] += data[: output_limit - len(kept[kind])]
        raise WardenFailed

    async def exec_stream(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60.0,  # noqa: ASYNC109 - enforced by the warden
        stdin: bytes = b"",
    ) -> AsyncGenerator[ExecOutput, None]:
        """Run as `exec`, but yield output as it comes, without a limit; closing kills the command."""
        request = {"argv": list(argv), "cwd": cwd, "env": dict(env or {}), "timeout": timeout}
        async with aclosing(self._command(request, stdin, timeout)) as frames:
            async for kind, data in frames:
                if kind == b"x":
                    end = _parse_exec_result(data)
                    yield ExecOutput("exit", b"", end.exit_code, end.timed_out)
                elif kind in {b"o", b"e"}:
                    yield ExecOutput("stdout" if kind == b"o" else "stderr", data)

    async def dial(self, port: int) -> Stream:
        """Open a byte stream to a TCP port on the container's loopback; the caller closes it. Raises DialRefused."""
        _, stream = await self._send_request("dial", {"port": port}, _CALL_SECONDS)
        return stream

    async def read(self, path: str, *, root: Root = "workspace", limit: int) -> bytes:
        """Read a regular file. Raises PathRefused, WardenFileNotFound, WardenNotAFile, WardenFileTooLarge."""
        content = bytearray()
        seconds = _CALL_SECONDS + limit / _BYTES_PER_SECOND
        async with self._request("read", path=path, root=root, limit=limit) as (_, (reader, _)), _deadline(seconds):
            async for _, data in _read_frames(reader):
                content += data
                if len(content) > limit:
                    raise WardenFailed
        return bytes(content)

    async def write(self, path: str, data: bytes, *, root: Root = "workspace", mode: int = 0o644) -> None:
        """Write a file atomically and durably; creates folders, replaces links. Raises PathRefused, WardenNotAFile."""
        seconds = _CALL_SECONDS + len(data) / _BYTES_PER_SECOND
        request = {"path": path, "root": root, "mode": mode, "size": len(data)}
        async with self._request("write", **request) as (_, (reader, writer)), _deadline(seconds):
            for start in range(0, len(data), _CHUNK_BYTES):
                writer.write(data[start : start + _CHUNK_BYTES])
                await writer.drain()
            async for _ in _read_frames(reader):
                raise WardenFailed

    async def list(self, path: str = ".", *, root: Root = "workspace") -> Sequence[FolderEntry]:
        """Return at most 10,000 entries by name. Raises PathRefused, WardenFileNotFound and WardenNotAFile."""
        return await self._read_items(_parse_entry, "list", path=path, root=root)

    async def start(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], restart: bool = True) -> None:
        """Start a supervised process in a session of its own. Raises ExecRefused and ProcessAlreadyRunning."""
        async with self._request("start", name=name, argv=[*argv], env=dict(env), restart=restart):
            return

    async def stop(self, name: str, grace: float = 10.0) -> None:
        """Send SIGTERM, after `grace` seconds SIGKILL; return when all its processes are gone. Idempotent."""
        async with self._request("stop", grace + _SPARE_SECONDS, name=name, grace=grace):
            return

    async def processes(self) -> Mapping[str, ProcessStatus]:
        async with self._request("processes") as (reply, _), _deadline():
            return {str(name): _parse_process(view) for name, view in reply["processes"].items()}

    async def logs(self, *, source: str | None = None, limit: int = 100) -> Sequence[LogLine]:
        """Return the last lines, oldest first."""
        return await self._read_items(_parse_line, "logs", source=source, limit=limit)

    async def follow(self, *, source: str | None = None, last: int = 0) -> AsyncGenerator[LogLine, None]:
        """Yield the last `last` lines and then new ones without a gap, until the consumer closes it.

        A consumer that falls too far behind gets WardenFailed.
        """
        async with self._request("follow", source=source, last=last) as (_, (reader, _)):
            async for _, data in _read_frames(reader, idle=None):
                with _reply_errors():
                    lines = [_parse_line(item) for item in json.loads(data)]
                for line in lines:
                    yield line

    async def _command(self, request: Json, stdin: bytes, seconds: float) -> AsyncGenerator[tuple[bytes, bytes], None]:
        until = asyncio.get_running_loop().time() + seconds + _SPARE_SECONDS
        async with self._request("exec", **request, stdin=bool(stdin)) as (_, (reader, writer)):
            sender = asyncio.create_task(_send_stdin(writer, stdin))
            try:
                async for frame in _read_frames(reader, until=until, last=True):
                    yield frame
            finally:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    async def _read_items(self, parse: Callable[[Any], T], op: str, **request: object) -> Sequence[T]:
        items: list[T] = []
        size = 0
        async with self._request(op, **request) as (_, (reader, _)), _deadline():
            async for _, data in _read_frames(reader):
                items += map(parse, json.loads(data))
                size += len(data)
                if size > _ITEMS_BYTES or len(items) > _ITEMS:
                    raise WardenFailed
        return items

    @asynccontextmanager
    async def _request(
        self, op: str, seconds: float = _CALL_SECONDS, /, **request: object
    ) -> AsyncGenerator[tuple[Json, Stream], None]:
        reply, stream = await self._send_request(op, request, seconds)
        try:
            yield reply, stream
        finally:
            stream[1].transport.abort()

    async def _send_request(self, op: str, request: Json, seconds: float) -> tuple[Json, Stream]:
        line = json.dumps({"op": op, **request}).encode() + b"\n"
        if len(line) > _FRAME_BYTES:
            raise PathRefused if "path" in request else ExecRefused
        reader, writer = await self._connect()
        try:
            async with _deadline(seconds):
                writer.write(line)
                return _check_reply(await _read_reply(reader)), (reader, writer)
        except BaseException:
            writer.transport.abort()
            raise


async def _read_reply(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionError):
        if line := await reader.readline():
            return line
    raise ContainerNotRunning  # the connection was closed without a reply


async def _read_frames(
    reader: asyncio.StreamReader, *, idle: float | None = _STEP_SECONDS, until: float | None = None, last: bool = False
) -> AsyncGenerator[tuple[bytes, bytes], None]:
    """Yield the frames of a reply, including the last one if `last`; `until` is on the loop's clock."""
    now = asyncio.get_running_loop().time
    while True:
        async with _deadline(idle if until is None else until - now()):
            kind, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
            if length > _FRAME_BYTES:
                raise WardenFailed
            async with asyncio.timeout(_STEP_SECONDS):
                data = await reader.readexactly(length)
            if kind == b"x":
                _check_reply(data)
        if last or kind != b"x":
            yield kind, data
        if kind == b"x":
            return


async def _send_stdin(writer: asyncio.StreamWriter, stdin: bytes) -> None:
    """Send the input, and an empty frame for its end."""
    with suppress(OSError):  # the reader gets and reports the error
        for start in range(0, len(stdin) + _CHUNK_BYTES if stdin else 0, _CHUNK_BYTES):
            chunk = stdin[start : start + _CHUNK_BYTES]
            writer.write(_HEADER.pack(b"i", len(chunk)) + chunk)
            await writer.drain()


@contextmanager
def _reply_errors() -> Generator[None, None, None]:
    """Raise WardenFailed for replies that are malformed, WardenDisconnected for those that are cut off."""
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise WardenDisconnected from error
    except _REPLY_ERRORS as error:
        raise WardenFailed from error


@asynccontextmanager
async def _deadline(seconds: float | None = _CALL_SECONDS) -> AsyncGenerator[None, None]:
    with _reply_errors():
        async with asyncio.timeout(seconds):
            yield


def _check_reply(line: bytes) -> Json:
    fields = json.loads(line)
    if fields["ok"] is True:
        return fields
    if known := PROBLEMS.get(fields["error"]):
        raise known
    raise WardenFailed(f"{WardenFailed.message}: {fields['message'][:200]!a}")


def _parse_exec_result(data: bytes, stdout: bytes = b"", stderr: bytes = b"") -> ExecResult:
    with _reply_errors():
        end = json.loads(data)
        return ExecResult(stdout, stderr, int(end["code"]), bool(end["timedOut"]), bool(end["truncated"]))


def _parse_entry(item: Any) -> FolderEntry:
    name, kind, size, mode, modified = item
    if kind not in {"file", "folder", "link", "other"} or not name or "/" in name or "\0" in name:
        raise WardenFailed
    return FolderEntry(name, kind, int(size), int(mode), _parse_time(modified))


def _parse_process(view: Any) -> ProcessStatus:
    if view["state"] not in {"running", "backoff", "exited"}:
        raise WardenFailed
    pid, code = (None if view[key] is None else int(view[key]) for key in ("pid", "exitCode"))
    return ProcessStatus(view["state"], pid, code, _parse_time(view["startedAt"]), int(view["restarts"]))


def _parse_line(item: Any) -> LogLine:
    moment, source, text = item
    return LogLine(_parse_time(moment), str(source), str(text))


def _parse_time(seconds: Any) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)
