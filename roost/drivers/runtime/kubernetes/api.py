"""Client of a Kubernetes API server: get, list, create, patch and delete by path, and the events of a watch.

Requests are repeated only if the server executed none of them, or if a repetition changes nothing. Answers are limited
in time and size, because a proxy or another server may answer in place of the API server. Paths, verbs and errors:
https://kubernetes.io/docs/reference/using-api/api-concepts/.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2

from roost.core import clock, ids
from roost.core.outage import Outage
from roost.drivers.runtime.kubernetes import errors
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess
from roost.drivers.runtime.kubernetes.errors import JsonObject, KubernetesRefused, KubernetesUnreachable, parse_object

_CALL_SECONDS, _ATTEMPT_SECONDS, _CONNECT_SECONDS, _LEAST_SECONDS = 60.0, 40.0, 5.0, 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_ANSWER_BYTES, _LINE_BYTES, _REASON_BYTES = 32 << 20, 4 << 20, 64 * 1024  # an object of etcd has at most 1.5 MiB
_PAGE_ITEMS = 250
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_CREDENTIALS = (errors.KubernetesUnauthorized, errors.KubernetesUntrusted)
_TCP_OPTIONS = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, getattr(socket, k), v) for k, v in _TCP_OPTIONS.items() if hasattr(socket, k)),
]
"""Socket options by which the kernel notices within half a minute that the server is gone."""
_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0)


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, Any]
    body: object = None
    content_type: str = "application/json"
    is_repeatable: bool = False


class KubernetesApi:
    """Client of one API server.

    Paths begin with `/api` or `/apis`; queries have the spelling of the API (`labelSelector`). Methods raise the errors
    of `errors.py`: KubernetesUnreachable, and KubernetesRefused with a class for each reason.
    """

    def __init__(self, access: ClusterAccess, version: str) -> None:
        """`version` is Roost's own, for the user agent."""
        self.access, self.user_agent = access, f"roost/{version}"
        self._outage = Outage("kubernetes")
        self._client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                verify=access.context, trust_env=False, limits=_LIMITS, socket_options=KEEPALIVE
            )
        )

    async def close(self) -> None:
        await self._client.aclose()

    def path(self, kind: str, name: str = "", group: str = "/api/v1") -> str:
        """Return the path of a collection of the namespace, or of one object."""
        return f"{group}/namespaces/{self.access.namespace}/{kind}{name and '/'}{name}"

    async def get(self, path: str, **query: Any) -> JsonObject:
        return await self._call(_Request("GET", path, query, is_repeatable=True))

    async def pages(
        self, path: str, limit: int = _PAGE_ITEMS, **query: Any
    ) -> AsyncGenerator[tuple[list[JsonObject], str]]:
        """Yield a list in parts of at most `limit` objects, each with the resource version of the same moment.

        Raises KubernetesExpired if that takes minutes.
        """
        more: object = None
        while True:
            part = {"limit": limit} if more is None else {"limit": limit, "continue": more}
            answer = await self.get(path, **query, **part)
            metadata, items = errors.read_metadata(answer), cast("object", answer.get("items"))
            if not isinstance(items, list) or not all(isinstance(one, dict) for one in cast("list[object]", items)):
                raise KubernetesUnreachable(f"the API server sent no list for {path}")
            yield cast("list[JsonObject]", items), str(metadata.get("resourceVersion") or "")
            if not (more := metadata.get("continue")):
                return

    async def list(self, path: str, **query: Any) -> list[JsonObject]:
        """Return a whole list; for many objects use `pages`."""
        return [item async for items, _ in self.pages(path, **query) for item in items]

    async def create(self, path: str, body: Mapping[str, Any], **query: Any) -> JsonObject:
        """Create an object in the collection `path`.

        After KubernetesUnreachable and server errors it may exist, unless the error says `is_unsent`.
        """
        return await self._call(_Request("POST", path, query, body))

    async def patch(self, path: str, body: object, kind: str = "merge-patch", **query: Any) -> JsonObject:
        """Change an object, and return it. kind: also `json-patch` and `strategic-merge-patch`."""
        return await self._call(_Request("PATCH", path, query, body, f"application/{kind}+json"))

    async def delete(self, path: str, *, uid: str | None = None, grace: int | None = None, **query: Any) -> JsonObject:
        """Delete an object and return it, or a `Status`; it may still be there until its finalizers are done.

        uid: delete that object only and raise KubernetesConflict for another of its name; lets lost requests be
        repeated, so KubernetesNotFound may mean that an earlier attempt deleted it. grace: seconds.
        """
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options |= {} if uid is None else {"preconditions": {"uid": uid}}
        options |= {} if grace is None else {"gracePeriodSeconds": grace}
        return await self._call(_Request("DELETE", path, query, options, is_repeatable=uid is not None))

    async def watch(
        self, path: str, stall_seconds: float, on_open: Callable[[], None] = lambda: None, **query: Any
    ) -> AsyncGenerator[tuple[str, JsonObject]]:
        """Yield types and objects of the events of one watch until the server ends it, or the generator is closed.

        `on_open` is called when the server has accepted the watch, which may have no event for a minute. Raises
        KubernetesUnreachable if nothing comes for `stall_seconds`, and never repeats a request.
        """
        async with self._open(
            _Request("GET", path, {"watch": True, "allowWatchBookmarks": True, **query}), stall_seconds
        ) as response:
            on_open()
            rest = b""
            async for part in response.aiter_raw():
                *lines, rest = (rest + part).split(b"\n")
                if len(rest) > _LINE_BYTES:
                    raise KubernetesUnreachable(f"the API server sent an event of more than {_LINE_BYTES} bytes")
                for event in map(parse_object, filter(None, lines)):
                    if not isinstance(item := event.get("object"), dict):
                        raise KubernetesUnreachable("the API server sent an event without an object")
                    yield str(event.get("type")), cast("JsonObject", item)

    async def _call(self, request: _Request) -> JsonObject:
        """Execute a request, again where that is safe, within a minute."""
        deadline = clock.monotonic_seconds() + _CALL_SECONDS
        pause, was_refused = _FIRST_PAUSE, False
        while True:
            try:
                return await self._attempt(request, min(_ATTEMPT_SECONDS, deadline - clock.monotonic_seconds()))
            except (KubernetesRefused, KubernetesUnreachable) as error:
                wait = (error.retry_after or 0.0) + add_jitter(pause)
                is_late = wait + _LEAST_SECONDS > deadline - clock.monotonic_seconds()
                is_refused = isinstance(error, _CREDENTIALS)  # which may have been replaced just now
                if is_late or (was_refused if is_refused else not _may_repeat(request, error)):
                    raise
                was_refused |= is_refused
            await asyncio.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _attempt(self, request: _Request, seconds: float) -> JsonObject:
        try:
            async with asyncio.timeout(seconds), self._open(request, seconds) as response:
                body = await _read_body(response, _ANSWER_BYTES)
        except TimeoutError:
            raise self._report(f"no answer within {seconds:.0f} s") from None
        if len(body) > _ANSWER_BYTES:
            raise KubernetesUnreachable(f"the API server sent an answer of more than {_ANSWER_BYTES} bytes")
        return parse_object(body)

    @asynccontextmanager
    async def _open(self, request: _Request, read_seconds: float) -> AsyncGenerator[httpx2.Response]:
        """Send a request and receive the head of its answer. Raises the errors of the class."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": self.user_agent}
        timeout = httpx2.Timeout(read_seconds, connect=_CONNECT_SECONDS, pool=_CONNECT_SECONDS)
        is_open = False
        try:
            async with self._client.stream(
                request.method,
                f"{self.access.url}{request.path}",
                params={name: _to_parameter(value) for name, value in request.query.items() if value is not None},
                content=None if request.body is None else json.dumps(request.body).encode(),
                headers={**headers, **self.access.headers(), "Content-Type": request.content_type},
                timeout=timeout,
                extensions={"sni_hostname": self.access.server_name},
            ) as response:
                await self._check_status(response)
                is_open = True
                yield response
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            self.access.expire()  # an authority or a certificate may have been replaced
            reason = str(error) or type(error).__name__
            if is_open:  # long answers break off as a matter of course
                raise KubernetesUnreachable(f"{self.access.url}: {reason}") from error
            raise self._report(reason, is_unsent=isinstance(error, _UNSENT)) from error

    async def _check_status(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status < 500:
            self._outage.end()
        if 200 <= status < 300:
            return
        error = errors.parse_refusal(
            status, await _read_body(response, _REASON_BYTES), response.headers.get("Retry-After")
        )
        if isinstance(error, errors.KubernetesUnauthorized):
            self.access.expire()
        raise error

    def _report(self, reason: str, *, is_unsent: bool = False) -> KubernetesUnreachable:
        self._outage.report(reason)
        kind = errors.KubernetesUntrusted if "CERTIFICATE_VERIFY_FAILED" in reason else KubernetesUnreachable
        return kind(f"{self.access.url}: {reason}", is_unsent=is_unsent)


def add_jitter(seconds: float) -> float:
    """Return a random time from half to one and a half of the given one."""
    return seconds * (0.5 + int.from_bytes(ids.random_bytes(2), "big") / 0xFFFF)


def _may_repeat(request: _Request, error: KubernetesRefused | KubernetesUnreachable) -> bool:
    if isinstance(error, KubernetesUnreachable):
        return error.is_unsent or request.is_repeatable
    return isinstance(error, errors.KubernetesThrottled) or (request.is_repeatable and error.status >= 500)


def _to_parameter(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _read_body(response: httpx2.Response, limit: int) -> bytearray:
    """Return a body, or its beginning if it is longer than `limit`."""
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > limit:
            break
    return body
