"""RPC of a kubo node (docs.ipfs.tech, kubo RPC API): each call is a POST that returns JSON lines or a stream.

Answers are limited although the node is the operator's own, and its messages go only to the log.
"""

import base64
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from roost.core.machine.network_advice import describe_network_error
from roost.core.sensitive import Sensitive
from roost.drivers.model.json_access import as_object, parse_json
from roost.drivers.network.contract import NetworkRefused, SourceFailed

CONNECT_SECONDS = 5.0
_MAX_LINE, _LAST_OBJECTS, _MAX_ERROR = 64 * 1024, 8, 500
"""Maximum bytes of a line, number of lines kept, and maximum characters of an error message."""


class KuboRpc:
    def __init__(self, url: str, credential: Sensitive[str] | None) -> None:
        """`credential` has kubo's own format: `bearer:TOKEN` or `basic:USER:PASSWORD`."""
        self._url = url
        self._credential = credential
        self._trust = httpx2.create_ssl_context()

    @asynccontextmanager
    async def post(
        self,
        verb: str,
        *,
        idle: float,
        content: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        **params: str,
    ) -> AsyncGenerator[httpx2.Response]:
        """Stream the answer of one call; `idle` is in seconds. Raises SourceFailed, NetworkRefused."""
        timeout = httpx2.Timeout(idle, connect=CONNECT_SECONDS)
        try:
            async with (
                httpx2.AsyncClient(timeout=timeout, verify=self._trust, trust_env=False) as client,
                client.stream(
                    "POST",
                    f"{self._url}/api/v0/{verb}",
                    params=params,
                    content=content,
                    headers={**self._headers(), **(headers or {})},
                ) as response,
            ):
                if not response.is_success:
                    raise NetworkRefused(await _reason(response))
                yield response
        except httpx2.HTTPError as error:
            raise SourceFailed(f"{verb}: {describe_network_error(error)}") from None

    async def call(
        self,
        verb: str,
        *,
        idle: float,
        content: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        **params: str,
    ) -> Sequence[Mapping[str, Any]]:
        """Return the last JSON objects of an answer. Raises SourceFailed, and NetworkRefused also for a late error."""
        objects: deque[Mapping[str, Any]] = deque(maxlen=_LAST_OBJECTS)
        async with self.post(verb, idle=idle, content=content, headers=headers, **params) as response:
            rest = b""
            async for piece in response.aiter_bytes():
                *whole, rest = (rest + piece).split(b"\n")
                if len(rest) > _MAX_LINE:
                    raise SourceFailed(f"{verb}: a line exceeds {_MAX_LINE} bytes")
                objects.extend(_object(line) for line in whole if line)
            if rest:
                objects.append(_object(rest))
        return tuple(objects)

    def _headers(self) -> Mapping[str, str]:
        headers = {"User-Agent": "roost", "Accept-Encoding": "identity"}
        if self._credential is None:
            return headers
        kind, _, secret = self._credential.reveal().partition(":")
        if kind == "basic":
            return {**headers, "Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
        return {**headers, "Authorization": f"Bearer {secret}"}


async def _reason(response: httpx2.Response) -> str:
    """Return the message of an error body: `{"Message": ...}`, or its first characters."""
    text = b""
    async for piece in response.aiter_bytes():
        text += piece
        if len(text) > _MAX_LINE:
            break
    try:
        return str(json.loads(text)["Message"])[:_MAX_ERROR]
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"{response.status_code} {text[:_MAX_ERROR].decode(errors='replace').strip()}"


def _object(line: bytes) -> Mapping[str, Any]:
    found = parse_json(line)
    if not isinstance(found, dict):
        raise SourceFailed("The node's answer is not a JSON object")
    answer = as_object(found)
    if answer.get("Type") == "error":
        raise NetworkRefused(str(answer.get("Message"))[:_MAX_ERROR])
    return answer
