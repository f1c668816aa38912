"""One HTTP endpoint of a model provider: requests with the key, answers within bounds, failures as UpstreamProblem.

Redirects are not followed, because the key would go along. The operator's proxy and certificate variables
(`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` ...) count, except for an endpoint on this machine's loopback.
"""

import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from roost.core import log
from roost.core.problem import Problem
from roost.drivers.model import json_access
from roost.drivers.model.contract import (
    Json,
    ModelSettings,
    UpstreamDenied,
    UpstreamLimited,
    UpstreamProblem,
    UpstreamRefused,
    UpstreamTooLarge,
    UpstreamUnavailable,
)
from roost.net.loopback import is_loopback_url

CONNECT = 10.0
IDLE = 120.0
WHOLE = 600.0
"""Seconds: to connect, between two pieces of a stream, and for a whole answer, of which nothing is heard before."""
LARGEST_ANSWER = 32 * 1024**2
LARGEST_EVENT = 8 * 1024**2
_LARGEST_ERROR = 64 * 1024
_LONGEST_MESSAGE = 500
_LONGEST_RETRY = 3600.0
_CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=50)
_KEY_LIKE = re.compile(r"\bsk-[\w*.-]+")

_log = log.get_logger(__name__)


class ProviderEndpointClient:
    def __init__(
        self,
        settings: ModelSettings,
        headers: Mapping[str, str],
        *,
        idle: float = IDLE,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`headers` carry the key in the form that the provider wants; `idle` is in seconds.

        `transport` takes the place of the process's own network with its proxies. It may refuse by a Problem.
        """
        self._name = settings.name
        self._key = settings.key
        self._idle = idle
        self._client = httpx2.AsyncClient(
            base_url=settings.url,
            headers={"User-Agent": "roost", "Accept-Encoding": "identity", **headers},
            limits=_CONNECTIONS,
            transport=transport,
            trust_env=not is_loopback_url(settings.url),
        )

    async def get(self, path: str) -> Json:
        return await self._whole("GET", path, None, self._idle)

    async def post(self, path: str, body: Json) -> Json:
        return await self._whole("POST", path, body, max(self._idle, WHOLE))

    async def events(self, path: str, body: Json) -> AsyncGenerator[Json, None]:
        """The JSON objects of a stream of server-sent events, until it ends or says `[DONE]`."""
        with self._translated():
            timeout = httpx2.Timeout(self._idle, connect=CONNECT, pool=CONNECT)
            async with self._client.stream("POST", path, json=body, timeout=timeout) as response:
                await self._accepted(response)
                async for event in httpx2.EventSource(response, LARGEST_EVENT):
                    if event.data == "[DONE]":
                        return
                    if event.data:
                        yield self._parsed(event.data)

    def broken(self, error: Any) -> UpstreamUnavailable:
        """The problem for an error object that came in the middle of a stream."""
        message, code = self._told({"error": error})
        return self._problem(UpstreamUnavailable, message, code)

    def unclear(self) -> UpstreamUnavailable:
        """The problem for an answer that is not what the protocol says."""
        return UpstreamUnavailable(f"The model provider {self._name} gave an answer that is not understood")

    def cut(self) -> UpstreamUnavailable:
        """The problem for a stream that ended before the answer did."""
        return UpstreamUnavailable(f"The model provider {self._name} broke off its answer")

    async def close(self) -> None:
        await self._client.aclose()

    async def _whole(self, method: str, path: str, body: Json | None, patience: float) -> Json:
        with self._translated():
            timeout = httpx2.Timeout(patience, connect=CONNECT, pool=CONNECT)
            async with self._client.stream(method, path, json=body, timeout=timeout) as response:
                await self._accepted(response)
                content, complete = await _content(response, LARGEST_ANSWER)
        if not complete:
            raise self.unclear()
        return self._parsed(content)

    async def _accepted(self, response: httpx2.Response) -> None:
        """Raises the UpstreamProblem that the status and the error body of a refusal mean."""
        status = response.status_code
        if 200 <= status < 300:
            return
        content, _ = await _content(response, _LARGEST_ERROR)
        message, code = self._told(json_access.parsed(content))
        kind = _kind(status)
        _log.warning("model provider refused", upstream=self._name, status=status, message=message)
        if kind is UpstreamDenied:
            message = ""  # it may name parts of the key
        raise self._problem(kind, message, code, _retry_after(response))

    def _problem(
        self, kind: type[UpstreamProblem], message: str, code: str | None, retry_after: float | None = None
    ) -> Any:
        text = f"{kind.message} ({self._name})" + (f": {message}" if message else "")
        return kind(text, extra={"code": code} if code else None, retry_after=retry_after)

    def _told(self, answer: Any) -> tuple[str, str | None]:
        """The message, without anything like a key, and the code of an error body in any of the usual forms."""
        found = json_access.obj(answer).get("error") or answer
        error = json_access.obj(found)
        message = error.get("message") or error.get("detail") or found
        code = json_access.string(error.get("code")) or json_access.string(error.get("type"))
        return self._redacted(json_access.string(message)), code[:100] or None

    def _redacted(self, text: str) -> str:
        if self._key is not None and (key := self._key.reveal()):
            text = text.replace(key, "[redacted]")
        return _KEY_LIKE.sub("[redacted]", log.redact_credentials(text))[:_LONGEST_MESSAGE]

    def _parsed(self, text: str | bytes) -> Json:
        if not (value := json_access.obj(json_access.parsed(text))):
            raise self.unclear()
        return value

    @contextmanager
    def _translated(self) -> Generator[None, None, None]:
        try:
            yield
        except UpstreamProblem:
            raise
        except Problem as refusal:
            raise UpstreamUnavailable(f"{UpstreamUnavailable.message} ({self._name}): {refusal.message}") from None
        except httpx2.RequestError as error:
            why = f"{UpstreamUnavailable.message} ({self._name}): {type(error).__name__}"
            raise UpstreamUnavailable(why) from error


def _kind(status: int) -> type[UpstreamProblem]:
    if status in (401, 402, 403):
        return UpstreamDenied
    if status == 413:
        return UpstreamTooLarge
    if status == 429:
        return UpstreamLimited
    return UpstreamRefused if 400 <= status < 500 and status != 408 else UpstreamUnavailable


async def _content(response: httpx2.Response, largest: int) -> tuple[bytes, bool]:
    """The first `largest` bytes of the body, and whether that is all of it."""
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > largest:
            return bytes(content[:largest]), False
    return bytes(content), True


def _retry_after(response: httpx2.Response) -> float | None:
    given = response.headers.get("retry-after", "")
    return min(float(given), _LONGEST_RETRY) if re.fullmatch(r"[0-9]{1,9}", given) else None
