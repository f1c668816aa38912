"""OpenClaw's RPC (protocol 4): calls and events over one WebSocket that is dialled into the container.

It connects as the engine's own back end: the internal token, straight from the loopback, with no forwarding header.
That is the one way in that needs no paired device and keeps all scopes. It knows no method by name, and believes
nothing that the gateway says beyond its form.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, EngineFailed
from roost.drivers.engine.openclaw.websocket import StreamWebSocket

Json = dict[str, Any]

_PROTOCOL = 4
_SCOPES = ("operator.read", "operator.write", "operator.admin", "operator.approvals", "operator.pairing")
_OPEN_SECONDS = 10.0
_MESSAGE_BYTES = 8 << 20  # the schema of the configuration has 2.4 MB
_EVENTS_KEPT = 256


class RpcRefused(EngineFailed):
    """The gateway understood and said no; `code` and `details` are its own words for why."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error.get("message") or "The gateway refused")[:2000])
        self.code = str(error.get("code", ""))
        self.details = _object(error.get("details"))
        self.retry_in = _retry_in(error, self.details)


@dataclass(frozen=True)
class RpcEvent:
    name: str
    payload: Mapping[str, Any]


class OpenClawRpc:
    """One open connection. Any number of tasks may call at once and follow events."""

    def __init__(self, socket: StreamWebSocket) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._followers: set[asyncio.Queue[RpcEvent | EngineFailed]] = set()
        self._ended: EngineFailed | None = None
        self.version = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, dial: Dial, port: int, token: Sensitive[str]) -> AsyncGenerator[Self]:
        """Connected and let in, within 10 s. Raises EngineFailed, Refused (a wrong token) and what `dial` raises."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_OPEN_SECONDS):
                    stream = await dial(port)
                    url = f"ws://127.0.0.1:{port}/"
                    rpc = cls(await stack.enter_async_context(StreamWebSocket.open(stream, url, _MESSAGE_BYTES)))
                    await stack.enter_async_context(rpc._reading())
                    await rpc._connect(token)
            except TimeoutError:
                raise EngineFailed("The gateway did not answer in time") from None
            yield rpc

    async def call(self, method: str, params: Mapping[str, Any] | None = None, timeout: float = 10.0) -> Any:  # noqa: ASYNC109 - part of the meaning: it covers the retries
        """The payload of the answer. A gateway that says it is busy starting is asked again until `timeout`.

        Raises RequestRefused, EngineFailed.
        """
        end = clock.monotonic_seconds() + timeout
        while True:
            try:
                return await self._ask(method, params or {}, end - clock.monotonic_seconds())
            except RpcRefused as refused:
                if refused.retry_in is None or clock.monotonic_seconds() + refused.retry_in >= end:
                    raise
                await asyncio.sleep(refused.retry_in)

    def events(self) -> AsyncGenerator[RpcEvent]:
        """Every event from this call on; who falls far behind loses the oldest. Raises EngineFailed at the end."""
        queue: asyncio.Queue[RpcEvent | EngineFailed] = asyncio.Queue(_EVENTS_KEPT)
        self._followers.add(queue)
        if self._ended is not None:
            queue.put_nowait(self._ended)
        return self._follow(queue)

    async def _follow(self, queue: asyncio.Queue[RpcEvent | EngineFailed]) -> AsyncGenerator[RpcEvent]:
        try:
            while isinstance(item := await queue.get(), RpcEvent):
                yield item
            raise item
        finally:
            self._followers.discard(queue)

    async def _connect(self, token: Sensitive[str]) -> None:
        async with aclosing(self.events()) as events:
            async for event in events:
                if event.name == "connect.challenge":
                    break
        hello = _object(await self.call("connect", _introduction(token), _OPEN_SECONDS))
        self.version = str(_object(hello.get("server")).get("version", ""))

    async def _ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        if self._ended is not None:
            raise self._ended
        name = str(next(self._ids))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[name] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._socket.send(json.dumps({"type": "req", "id": name, "method": method, "params": params}))
                return await answer
        except TimeoutError:
            raise EngineFailed(f"The gateway did not answer {method} in time") from None
        finally:
            del self._pending[name]

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self._read())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for text in self._socket.receive():
                self._take(_object(json.loads(text)))
        except EngineFailed as ended:
            self._end(ended)
        except (ValueError, RecursionError):
            self._end(EngineFailed("The gateway sent something that is not JSON"))

    def _take(self, message: Json) -> None:
        match message.get("type"):
            case "res":
                answer = self._pending.get(str(message.get("id")))
                if answer is None or answer.done():
                    return
                if message.get("ok") is True:
                    answer.set_result(message.get("payload"))
                else:
                    answer.set_exception(RpcRefused(_object(message.get("error"))))
            case "event":
                self._tell(RpcEvent(str(message.get("event", "")), _object(message.get("payload"))))
            case _:
                return

    def _tell(self, item: RpcEvent | EngineFailed) -> None:
        for queue in self._followers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(item)

    def _end(self, ended: EngineFailed) -> None:
        self._ended = ended
        self._tell(ended)
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ended)


def _introduction(token: Sensitive[str]) -> Json:
    return {
        "minProtocol": _PROTOCOL,
        "maxProtocol": _PROTOCOL,
        "client": {"id": "gateway-client", "version": "0.1.0", "platform": "linux", "mode": "backend"},
        "role": "operator",
        "scopes": list(_SCOPES),
        "caps": [],
        "commands": [],
        "permissions": {},
        "auth": {"password": token.reveal()},
        "locale": "en-US",
        "userAgent": "roost",
    }


def _retry_in(error: Json, details: Json) -> float | None:
    """Seconds until it is worth asking again, if it is."""
    wait = error.get("retryAfterMs", details.get("retryAfterMs"))
    if error.get("code") != "UNAVAILABLE" or not isinstance(wait, int | float):
        return None
    return min(max(wait / 1000, 0.05), 2.0)


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
