"""Client of the Docker Engine API over its Unix socket: JSON calls, archives, progress, and the streams of commands.

Some calls need no SDK: a request is a connection of its own, which costs less than a millisecond on a Unix socket.
The oldest version of the API is that of Engine 20.10 and of Podman's service; newer engines refuse it:
https://docs.docker.com/reference/api/engine/.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from roost.core.outage import Outage
from roost.core.problem import DependencyAway
from roost.drivers.runtime.contract import RuntimeFailed
from roost.net.http_request import HttpResponse, InvalidResponseError, send_request

_OLDEST, _NEWEST = (1, 41), (1, 44)
_CALL_SECONDS, _HEAD_SECONDS = 60.0, 600.0
_ANSWER_BYTES, _LINE_BYTES, _HEAD_BYTES = 16 << 20, 1 << 20, 64 * 1024
_JSON, _TAR = "application/json", "application/x-tar"
_FULL_DISK = "no space left on device"
_UPGRADED = 101
MISSING, CONFLICT = 404, 409
_VERSIONS, _PODMAN = "/version", "Podman Engine"

Query = Mapping[str, str | int | bool | list[str] | dict[str, list[str]]]


class EngineUnreachable(RuntimeFailed, DependencyAway):
    """No Docker Engine answers at the socket; `message` says why and what to do."""

    message = "Docker is unavailable"


class EngineRefused(RuntimeFailed):
    """The Docker Engine answered with an error."""

    def __init__(self, status: int, reason: str) -> None:
        advice = ". Its disk is full: free space there, or with `docker system prune`" if _FULL_DISK in reason else ""
        super().__init__(f"Docker: {reason}{advice}")
        self.status = status


@contextmanager
def suppress_status(status: int = MISSING) -> Generator[None]:
    """Ignore one error of the engine."""
    try:
        yield
    except EngineRefused as error:
        if error.status != status:
            raise


class EngineApi:
    """Client of one engine."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._version, self._is_podman = "", False
        self._outage = Outage("docker")

    async def is_podman(self) -> bool:
        """Return whether this is Podman's service. Raises as `call`."""
        await self._prefix()
        return self._is_podman

    async def call(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        """Return the JSON value of an answer, None if it is empty. Raises EngineRefused and EngineUnreachable."""
        content = b"" if body is None else json.dumps(body).encode()
        async with self._request(method, path, query, content, _JSON) as response:
            text = await response.read_all(_ANSWER_BYTES)
        try:
            return json.loads(text) if text.strip() else None
        except ValueError:
            raise EngineUnreachable(f"No JSON comes from {self.socket}: is this the socket of Docker?") from None

    async def put_archive(self, container: str, path: str, archive: bytes | AsyncIterable[bytes]) -> None:
        """Unpack a tar archive below a path of a container, which need not run. Raises as `call`."""
        where = f"/containers/{container}/archive"
        async with self._request("PUT", where, {"path": path}, archive, _TAR) as response:
            await response.read_all(_ANSWER_BYTES)

    async def get_archive(self, container: str, path: str) -> bytes:
        """Return a file of a container, which need not run, as a tar archive. Raises as `call`."""
        async with self._request("GET", f"/containers/{container}/archive", {"path": path}) as response:
            return await response.read_all(_ANSWER_BYTES)

    async def follow(
        self, method: str, path: str, body: bytes = b"", **query: Any
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the lines of an answer that takes long, such as the progress of a pull. Raises as `call`."""
        async with self._request(method, path, query, body) as response:
            rest = b""
            while part := await response.read():
                *lines, rest = (rest + part).split(b"\n")
                if len(rest) > _LINE_BYTES:
                    raise EngineUnreachable("Docker: a line of its answer is too long")
                for line in filter(None, map(bytes.strip, lines)):
                    yield json.loads(line)

    async def attach(self, exec_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Start a prepared command; return the stream of its input and output (`/exec/{id}/start`)."""
        content = json.dumps({"Detach": False, "Tty": False}).encode()
        head = (
            f"POST {await self._prefix()}/exec/{exec_id}/start HTTP/1.1\r\nHost: docker\r\nContent-Type: {_JSON}\r\n"
            f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        reader, writer = await self._connect()
        try:
            writer.write(head.encode() + content)
            status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])
            reason = "" if status == _UPGRADED else (await reader.read(_HEAD_BYTES)).decode(errors="replace").strip()
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            writer.transport.abort()
            raise EngineUnreachable(f"Docker: no stream: {error}") from error
        except BaseException:
            writer.transport.abort()
            raise
        if status != _UPGRADED:
            writer.transport.abort()
            raise EngineRefused(status, reason)
        return reader, writer

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: Query,
        content: bytes | AsyncIterable[bytes] = b"",
        content_type: str = _JSON,
    ) -> AsyncGenerator[HttpResponse]:
        parameters = urlencode({name: _parameter(value) for name, value in query.items()})
        prefix = "" if path == _VERSIONS else await self._prefix()
        target = f"{prefix}{quote(path)}" + (f"?{parameters}" if parameters else "")
        length = (
            {"Content-Length": str(len(content))} if isinstance(content, bytes) else {"Transfer-Encoding": "chunked"}
        )
        headers = {"Content-Type": content_type, "Connection": "close", **length}
        try:
            stream = await self._connect()
            async with send_request(stream, f"{method} {target} HTTP/1.1", headers, content, _HEAD_SECONDS) as response:
                if response.status >= 400:
                    raise EngineRefused(response.status, _reason(await response.read_all(_ANSWER_BYTES)))
                self._outage.end()
                yield response
        except EngineUnreachable as problem:  # no connection
            self._outage.report(problem.message)
            raise
        except (OSError, EOFError, InvalidResponseError) as error:
            self._outage.report(f"it broke off: {error}")
            raise EngineUnreachable(f"Docker broke off: {error}") from error

    async def _prefix(self) -> str:
        """Return the start of all paths, a version of the API that the engine and this client know."""
        if not self._version:
            found = await self.call("GET", _VERSIONS)
            try:
                newest, oldest = (
                    _parse_version(found["ApiVersion"]),
                    _parse_version(found.get("MinAPIVersion") or "1.0"),
                )
            except (KeyError, TypeError, ValueError, AttributeError):
                raise EngineUnreachable(f"No Docker answers at {self.socket}: is this its socket?") from None
            if newest < _OLDEST:
                raise EngineUnreachable(f"Docker {found.get('Version', '')} is too old: install 20.10 or newer")
            self._is_podman = any(part.get("Name") == _PODMAN for part in found.get("Components") or ())
            self._version = "/v{}.{}".format(*max(oldest, min(newest, _NEWEST)))
        return self._version

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_unix_connection(self.socket)
        except FileNotFoundError:
            reason = "there is no such socket: start Docker, or set `docker_socket` to its socket"
        except PermissionError:
            reason = "this user may not use it: add it to the group `docker`, or use rootless Docker or Podman"
        except ConnectionRefusedError:
            reason = "nothing listens there: start Docker"
        except OSError as error:
            reason = str(error)
        raise EngineUnreachable(f"Docker cannot be reached at {self.socket}: {reason}")


def _parse_version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _parameter(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else json.dumps(value)


def _reason(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:500].decode(errors="replace")
