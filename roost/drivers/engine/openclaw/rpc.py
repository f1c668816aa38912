"""OpenClaw's RPC (protocol 4): concurrent calls over a WebSocket into the container.

It connects like the engine's own back end: with the internal token, from the loopback, and without a forwarding header.
Only such a connection has all scopes without a paired device. The gateway's messages are untrusted.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, EngineFailed
from roost.drivers.model.json_access import Json, as_object
from roost.drivers.runtime.contract import Stream

PORT = 18789
_PROTOCOL = 4
_SCOPES = ("operator.read", "operator.write", "operator.admin", "operator.approvals", "operator.pairing")
_OPEN_SECONDS = 10.0
_MAX_MESSAGE_BYTES = 8 << 20  # the schema of the configuration has 2.4 MB
_MAX_EVENTS = 1000
_CHUNK = 65536


class RpcRefused(EngineFailed):
    """The gateway rejected a call; `code` and `details` are its reasons."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error.get("message") or "The gateway refused")[:2000])
        self.code = str(error.get("code", ""))
        self.details = as_object(error.get("details"))
        self.retry_seconds = _retry_seconds(error, self.details)


class OpenClawRpc:
    """An open connection, for concurrent calls."""

    def __init__(self, socket: "StreamWebSocket", subscribed: Collection[str] = ()) -> None:
        self._socket = socket
        self._subscribed = subscribed
        self._events: asyncio.Queue[Json | None] = asyncio.Queue(_MAX_EVENTS)
        self._ids = itertools.count(1)
        self._challenge: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._failure: EngineFailed | None = None
        self.version = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, dial: Dial, token: Sensitive[str], subscribed: Collection[str] = ()) -> AsyncGenerator[Self]:
        """Connect and authenticate within 10 s; `subscribed` names the events that `events` yields.

        Raises EngineFailed, RpcRefused for a wrong token, and the errors of `dial`.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_OPEN_SECONDS):
                    stream = await dial(PORT)
                    url = f"ws://127.0.0.1:{PORT}/"
                    socket = await stack.enter_async_context(StreamWebSocket.open(stream, url, _MAX_MESSAGE_BYTES))
                    rpc = cls(socket, subscribed)
                    await stack.enter_async_context(rpc._reading())
                    await rpc._authenticate(token)
            except TimeoutError:
                raise EngineFailed("The gateway did not answer in time") from None
            yield rpc

    async def call(self, method: str, params: Mapping[str, Any] | None = None, timeout: float = 10.0) -> Any:  # noqa: ASYNC109 - it includes the retries
        """Return the payload of the answer. Repeats the call until `timeout` while the gateway is starting.

        Raises RpcRefused, EngineFailed.
        """
        end = clock.monotonic_seconds() + timeout
        while True:
            try:
                return await self._call_once(method, params or {}, end - clock.monotonic_seconds())
            except RpcRefused as refused:
                if refused.retry_seconds is None or clock.monotonic_seconds() + refused.retry_seconds >= end:
                    raise
                await asyncio.sleep(refused.retry_seconds)

    async def events(self) -> AsyncGenerator[Json]:
        """Yield the subscribed events until the connection ends, then raise EngineFailed."""
        while (event := await self._events.get()) is not None:
            yield event
        raise self._failure or EngineFailed("The connection to the gateway ended")

    async def _authenticate(self, token: Sensitive[str]) -> None:
        await self._challenge
        hello = as_object(await self.call("connect", _connect_params(token), _OPEN_SECONDS))
        self.version = str(as_object(hello.get("server")).get("version", ""))

    async def _call_once(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        if self._failure is not None:
            raise self._failure
        request_id = str(next(self._ids))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answer
        request = {"type": "req", "id": request_id, "method": method, "params": params}
        try:
            async with asyncio.timeout(seconds):
                await self._socket.send(json.dumps(request))
                return await answer
        except TimeoutError:
            raise EngineFailed(f"The gateway did not answer {method} in time") from None
        finally:
            del self._pending[request_id]

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
                message = as_object(json.loads(text))
                self._handle(message)
                if message.get("type") == "event" and message.get("event") in self._subscribed:
                    await self._events.put(message)
        except EngineFailed as failure:
            self._fail(failure)
        except (ValueError, RecursionError):
            self._fail(EngineFailed("The gateway sent a message that is not JSON"))
        await self._events.put(None)

    def _handle(self, message: Json) -> None:
        if message.get("type") == "event" and message.get("event") == "connect.challenge":
            if not self._challenge.done():
                self._challenge.set_result(None)
        elif message.get("type") == "res":
            answer = self._pending.get(str(message.get("id")))
            if answer is None or answer.done():
                return
            if message.get("ok") is True:
                answer.set_result(message.get("payload"))
            else:
                answer.set_exception(RpcRefused(as_object(message.get("error"))))

    def _fail(self, failure: EngineFailed) -> None:
        self._failure = failure
        for waiting in (self._challenge, *self._pending.values()):
            if not waiting.done():
                waiting.set_exception(failure)


class StreamWebSocket:
    """An open WebSocket over a byte stream, with the I/O-free protocol of `websockets`; messages are text.

    Any number of tasks can send, one can receive.
    """

    def __init__(self, stream: Stream, protocol: ClientProtocol) -> None:
        self._reader, self._writer = stream
        self._protocol = protocol

    @classmethod
    @asynccontextmanager
    async def open(cls, stream: Stream, uri: str, max_size: int) -> AsyncGenerator[Self]:
        """Upgrade a stream; the caller sets the deadline. Raises EngineFailed if the gateway refuses the upgrade."""
        protocol = ClientProtocol(parse_uri(uri), max_size=max_size)
        socket = cls(stream, protocol)
        try:
            await socket._upgrade()
            yield socket
        finally:
            socket._close()

    async def send(self, text: str) -> None:
        """Send a message. Raises EngineFailed if the connection is closed."""
        if self._protocol.state is not State.OPEN:
            raise EngineFailed(self._close_reason())
        self._protocol.send_text(text.encode())
        await self._flush()

    async def receive(self) -> AsyncGenerator[str]:
        """Yield messages until the connection ends, then raise EngineFailed with the close code."""
        parts = bytearray()
        while True:
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                    parts += event.data
                    if event.fin:
                        yield parts.decode(errors="replace")
                        parts.clear()
            if self._protocol.state is State.CLOSED or not await self._fill():
                raise EngineFailed(self._close_reason())

    async def _upgrade(self) -> None:
        self._protocol.send_request(self._protocol.connect())
        await self._flush()
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            if not await self._fill():
                break
        if self._protocol.state is not State.OPEN:
            raise EngineFailed(f"The gateway refused the WebSocket: {self._protocol.handshake_exc}")

    async def _fill(self) -> bool:
        """Read from the stream into the protocol once; return False at the end of the stream."""
        try:
            data = await self._reader.read(_CHUNK)
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            await self._flush()  # sends pongs and the answer to a close
        except (OSError, WebSocketException, EOFError):
            return False
        return bool(data)

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)
        try:
            await self._writer.drain()
        except OSError as error:
            raise EngineFailed(f"The gateway closed the connection: {error}") from error

    def _close_reason(self) -> str:
        close = self._protocol.close_rcvd or self._protocol.close_sent
        reason = f"{close.code}: {close.reason}" if close else "without a close frame"
        return f"The connection to the gateway ended ({reason})"

    def _close(self) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            for data in self._protocol.data_to_send():
                self._writer.write(data)
        self._writer.close()


def _connect_params(token: Sensitive[str]) -> Json:
    return {
        "minProtocol": _PROTOCOL,
        "maxProtocol": _PROTOCOL,
        "client": {"id": "gateway-client", "version": "0.1.0", "platform": "linux", "mode": "backend"},
        "role": "operator",
        "scopes": list(_SCOPES),
        "caps": ["tool-events"],  # without it, no event tells of tools
        "commands": [],
        "permissions": {},
        "auth": {"password": token.reveal()},
        "locale": "en-US",
        "userAgent": "roost",
    }


def _retry_seconds(error: Json, details: Json) -> float | None:
    """Return the seconds before a retry; None if a retry is useless."""
    wait = error.get("retryAfterMs", details.get("retryAfterMs"))
    if error.get("code") != "UNAVAILABLE" or not isinstance(wait, int | float):
        return None
    return min(max(wait / 1000, 0.05), 2.0)
