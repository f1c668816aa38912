"""One request to a gateway: for asking whether it is well, and for the abilities of engines that speak HTTP.

HTTP/1.0, so that the answer ends where the stream ends and has no chunks. Time and size are bounded: a gateway is as
trustworthy as the agent that runs beside it.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roost.core.problem import Problem
from roost.drivers.engine.contract import Dial, EngineFailed

_LIMIT = 2 << 20


@dataclass(frozen=True)
class HttpResponse:
    status: int
    body: bytes


async def answers(dial: Dial, port: int, path: str) -> bool:
    """Whether the gateway answers with 200 within 2 s."""
    try:
        async with asyncio.timeout(2):
            return (await get(dial, port, path)).status == 200
    except (Problem, TimeoutError):
        return False


async def get_json(dial: Dial, port: int, path: str, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object that the gateway answers within 10 s. Raises EngineFailed."""
    try:
        async with asyncio.timeout(10):
            answer = await get(dial, port, path, headers)
        found = json.loads(answer.body) if answer.status == 200 else None
    except TimeoutError:
        raise EngineFailed("The gateway did not answer in time") from None
    except (ValueError, RecursionError):
        raise EngineFailed("The gateway answered with something that is not JSON") from None
    if not isinstance(found, dict):
        raise EngineFailed(f"The gateway answered {answer.status}")
    return found  # pyright: ignore[reportUnknownVariableType] - JSON


async def get(dial: Dial, port: int, path: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """The caller sets the deadline. Raises EngineFailed (no HTTP, or too long) and what `dial` raises."""
    return await _request(dial, port, f"GET {path}", headers or {}, b"")


async def send_json(
    dial: Dial, port: int, order: str, headers: Mapping[str, str], body: Mapping[str, Any] | None = None
) -> tuple[int, Mapping[str, Any]]:
    """The status and the JSON object that are answered within 10 s to an order such as `POST /jobs`.

    Raises EngineFailed and what `dial` raises.
    """
    content = b"" if body is None else json.dumps(body).encode()
    typed = {**headers, "Content-Type": "application/json", "Content-Length": str(len(content))}
    try:
        async with asyncio.timeout(10):
            answer = await _request(dial, port, order, typed, content)
        found = json.loads(answer.body)
    except TimeoutError:
        raise EngineFailed("The gateway did not answer in time") from None
    except (ValueError, RecursionError):
        raise EngineFailed("The gateway answered with something that is not JSON") from None
    if not isinstance(found, dict):
        raise EngineFailed(f"The gateway answered {answer.status}")
    return answer.status, found  # pyright: ignore[reportUnknownVariableType] - JSON


async def _request(dial: Dial, port: int, order: str, headers: Mapping[str, str], content: bytes) -> HttpResponse:
    reader, writer = await dial(port)
    lines = [f"{order} HTTP/1.0", "Host: 127.0.0.1", *(f"{key}: {value}" for key, value in headers.items())]
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        return _parse(await _read(reader))
    except OSError as error:
        raise EngineFailed(f"The gateway closed the connection: {error}") from error
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    received = bytearray()
    while chunk := await reader.read(65536):
        received += chunk
        if len(received) > _LIMIT:
            raise EngineFailed("The gateway's answer is too long")
    return bytes(received)


def _parse(received: bytes) -> HttpResponse:
    head, found, body = received.partition(b"\r\n\r\n")
    protocol, _, rest = head.partition(b" ")
    if not found or not protocol.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise EngineFailed("The gateway gave no HTTP answer")
    return HttpResponse(int(rest[:3]), body)
