"""HTTP requests to a gateway: readiness checks, and the API of engines that have one.

Requests are HTTP/1.0, so that the answer ends with the stream and is not chunked. Time and size are limited, because
an agent can replace the gateway in its container.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

from roost.core.event_stream_decoder import EventStreamDecoder, EventTooLongError
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.contract import Dial, EngineFailed
from roost.drivers.model.json_access import Json
from roost.net.http_request import InvalidResponseError, ResponseTooLongError, send_request

_LIMIT = 2 << 20


class GatewayHttpAbility:
    """Base of abilities that use the HTTP API of an agent's gateway, at a port of the container's loopback."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def _send(
        self,
        agent: AgentContext,
        request: str,
        body: Mapping[str, Any] | None = None,
        *,
        expected: Collection[int] = (200,),
        limit: int = _LIMIT,
    ) -> tuple[int, Json]:
        """Call `send_json` for the gateway of an agent."""
        dial, port, token = agent.warden.dial, self._port, agent.token
        return await send_json(dial, port, request, token, body, expected=expected, limit=limit)


async def is_answering(dial: Dial, port: int, path: str) -> bool:
    """Return whether the gateway answers with 200 within 2 s."""
    try:
        async with asyncio.timeout(2):
            return (await _request(dial, port, f"GET {path}", {}, b""))[0] == 200
    except (Problem, TimeoutError):
        return False


async def send_json(
    dial: Dial,
    port: int,
    request: str,
    token: Sensitive[str],
    body: Mapping[str, Any] | None = None,
    *,
    expected: Collection[int] = (200,),
    limit: int = _LIMIT,
) -> tuple[int, Json]:
    """Send a request such as `POST /jobs`; return the status and the JSON object of the answer within 10 s.

    Raises EngineFailed, also for a status that is not in `expected`, and the errors of `dial`.
    """
    content = b"" if body is None else json.dumps(body).encode()
    try:
        async with asyncio.timeout(10):
            status, answer = await _request(dial, port, request, _json_headers(token, content), content, limit)
        found = json.loads(answer) if status in expected else None
    except TimeoutError:
        raise EngineFailed("The gateway did not answer in time") from None
    except (ValueError, RecursionError):
        raise EngineFailed("The gateway's answer is not JSON") from None
    if not isinstance(found, dict):
        raise EngineFailed(f"The gateway answered {status}")
    return status, found  # pyright: ignore[reportUnknownVariableType] - JSON


async def stream_events(
    dial: Dial, port: int, request: str, token: Sensitive[str], body: Mapping[str, Any], headers: Mapping[str, str]
) -> AsyncGenerator[tuple[str, str], None]:
    """Send a request and yield the name (by default `message`) and the data of each server-sent event.

    Closing the generator closes the connection. Raises EngineFailed, also for another status than 200, and the errors
    of `dial`. The caller limits the time.
    """
    content = json.dumps(body).encode()
    stream = await dial(port)
    try:
        async with send_request(
            stream, f"{request} HTTP/1.0", {**_json_headers(token, content), **headers}, content
        ) as response:
            if response.status != 200:
                raise EngineFailed(f"The gateway answered {response.status}")
            decoder = EventStreamDecoder(_LIMIT)
            while chunk := await response.read():
                for event in decoder.feed(chunk):
                    yield event
    except EventTooLongError:
        raise EngineFailed("The gateway's event is too long") from None
    except (OSError, EOFError, InvalidResponseError) as error:
        raise EngineFailed(f"The gateway's stream failed: {error or 'it is not HTTP'}") from error


def _json_headers(token: Sensitive[str], content: bytes) -> Mapping[str, str]:
    return {
        "Authorization": f"Bearer {token.reveal()}",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
    }


async def _request(
    dial: Dial, port: int, request: str, headers: Mapping[str, str], content: bytes, limit: int = _LIMIT
) -> tuple[int, bytes]:
    stream = await dial(port)
    try:
        async with send_request(stream, f"{request} HTTP/1.0", headers, content) as response:
            return response.status, await response.read_all(limit)
    except ResponseTooLongError:
        raise EngineFailed("The gateway's answer is too long") from None
    except (InvalidResponseError, EOFError):
        raise EngineFailed("The gateway's answer is not HTTP") from None
    except OSError as error:
        raise EngineFailed(f"The gateway closed the connection: {error}") from error
