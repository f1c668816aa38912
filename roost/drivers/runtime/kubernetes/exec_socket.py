"""Commands in containers of pods, whose standard input and output are a byte stream over one WebSocket.

A message begins with the number of its channel; version 5 of the protocol can close the standard input (KEP-4006,
"Transition from SPDY to WebSockets"). Nothing is buffered here: flow control is that of the connection.
"""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlencode

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from roost.core.machine.unix_socket import Stream
from roost.core.problem import Problem
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.runtime.kubernetes.api import KEEPALIVE, KubernetesApi
from roost.drivers.runtime.kubernetes.errors import (
    KubernetesUnauthorized,
    KubernetesUnreachable,
    parse_object,
    parse_refusal,
    to_line,
)

_OPEN_SECONDS = 10.0
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_VERSION_5, _VERSION_4 = Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io")
_MESSAGE_BYTES, _FRAME_BYTES, _STATUS_BYTES, _STDERR_BYTES, _STREAM_BYTES = 1 << 20, 65536, 65536, 4096, 65536


class ExecFailed(RuntimeFailed):
    """The command could not be run, or it failed; `message` has the end of its standard error."""


async def open_exec(api: KubernetesApi, pod: str, command: Sequence[str], container: str | None = None) -> Stream:
    """Run a command; return its standard output and input. See `connect_exec`, whose transport the writer has."""
    reader = asyncio.StreamReader(limit=_STREAM_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = await connect_exec(api, pod, command, protocol, container)
    return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())


async def connect_exec(
    api: KubernetesApi, pod: str, command: Sequence[str], protocol: asyncio.Protocol, container: str | None = None
) -> "ExecTransport":
    """Run a command with a protocol that writes its standard input and receives its standard output.

    pod: path below the server's URL (`/api/v1/namespaces/<namespace>/pods/<name>`). Raises KubernetesUnreachable and
    KubernetesRefused. Newer servers accept the connection before they reach the container, so that the failure comes
    later: `ExecTransport.failure` is set when the connection is lost.
    """
    query = [("command", part) for part in command] + [("container", container)] * bool(container)
    query += [("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
    url = f"{api.access.url.replace('http', 'ws', 1)}{pod}/exec?{urlencode(query)}"
    try:
        return await _connect(api, url, protocol)
    except KubernetesUnauthorized:  # a token may have been replaced a moment ago
        api.access.expire()
        return await _connect(api, url, protocol)


async def _connect(api: KubernetesApi, url: str, protocol: asyncio.Protocol) -> "ExecTransport":
    uri = parse_uri(url)
    websocket = ClientProtocol(uri, subprotocols=[_VERSION_5, _VERSION_4], max_size=_MESSAGE_BYTES)
    transport = ExecTransport(websocket, {**api.access.headers(), "User-Agent": api.user_agent}, protocol)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            raw, _ = await loop.create_connection(lambda: transport, uri.host, uri.port)
            if uri.secure:
                context, name = api.access.context, api.access.server_name
                connection = await loop.start_tls(raw, transport, context, server_hostname=name)
                transport.start_handshake(cast("asyncio.Transport", connection))
            else:
                transport.start_handshake(raw)
            await transport.opened
    except OSError as error:  # TimeoutError and ssl.SSLError among them
        transport.abort()
        raise KubernetesUnreachable(str(error) or f"no stream within {_OPEN_SECONDS:.0f} s") from error
    except BaseException:
        transport.abort()
        raise
    return transport


class ExecTransport(asyncio.Protocol, asyncio.Transport):
    """Transport of a command's standard input and output, and protocol of the connection that carries them.

    opened: done when the command's protocol is connected. failure: why the stream ended, None if the command succeeded
    or the stream was closed here. A command that fails ends its output as any other; its protocol loses a connection
    with an error only if that is cut.
    """

    def __init__(self, websocket: ClientProtocol, headers: dict[str, str], protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._websocket, self._headers, self._protocol = websocket, headers, protocol
        self._raw = self._connection = asyncio.Transport()  # the socket's, and that with TLS
        self._channel: int | None = None  # of the message that is being received
        self._status, self._stderr = bytearray(), bytearray()
        self._is_closing = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failure: Problem | None = None

    # Called by the command's protocol

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        for at in range(0, len(data) if self._is_open() else 0, _FRAME_BYTES):
            self._websocket.send_binary(b"%c%b" % (_STDIN, data[at : at + _FRAME_BYTES]))
            self._flush()

    def can_write_eof(self) -> bool:
        return self._websocket.subprotocol == _VERSION_5

    def write_eof(self) -> None:
        """Close the command's standard input. Raises NotImplementedError with version 4."""
        if not self.can_write_eof():
            raise NotImplementedError("this Kubernetes API server cannot close the input of a command")
        if self._is_open():
            self._websocket.send_binary(bytes((_CLOSE, _STDIN)))
            self._flush()

    def close(self) -> None:
        if self._is_open():
            self._websocket.send_close(1000)
            self._flush()
        self._is_closing = True
        self._connection.close()

    def abort(self) -> None:
        self._is_closing = True
        self.opened.cancel()
        with suppress(NotImplementedError):  # not connected
            self._connection.abort()

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._raw.pause_reading()  # not that of TLS: a paused one of uvloop loses what it holds when the server closes

    def resume_reading(self) -> None:
        if not self._raw.is_closing():
            self._raw.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._connection.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._connection.get_write_buffer_size()

    # Called by the connection's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = self._connection = cast("asyncio.Transport", transport)
        raw = cast("socket.socket", transport.get_extra_info("socket"))
        for level, name, value in KEEPALIVE:
            raw.setsockopt(level, name, value)

    def start_handshake(self, connection: asyncio.Transport) -> None:
        self._connection = connection
        request = self._websocket.connect()
        request.headers.update(self._headers)
        self._websocket.send_request(request)
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._websocket.receive_data(data)
        self._take_events()

    def eof_received(self) -> None:
        self._websocket.receive_eof()
        self._take_events()

    def connection_lost(self, exc: Exception | None) -> None:
        was_closed, self._is_closing = self._is_closing, True
        if not self.opened.done():
            self.opened.set_exception(KubernetesUnreachable(str(exc or "the connection was closed")))
        elif not self.opened.cancelled() and self.opened.exception() is None:
            self.failure = None if was_closed else self._read_failure(exc)
            self._protocol.connection_lost(None if isinstance(self.failure, ExecFailed) else self.failure)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _is_open(self) -> bool:
        return not self._is_closing and self._websocket.state is State.OPEN

    def _flush(self) -> None:
        for part in self._websocket.data_to_send():
            if part:  # an empty part asks for the end, which `close` brings
                self._connection.write(part)

    def _take_events(self) -> None:
        self._flush()
        for event in self._websocket.events_received():
            if isinstance(event, Frame):
                self._take_frame(event)
            elif isinstance(event, Response) and self._websocket.handshake_exc is None and not self.opened.done():
                self.opened.set_result(None)
                self._protocol.connection_made(self)
        error = self._websocket.handshake_exc
        if error is not None and not self.opened.done():
            response = error.response if isinstance(error, InvalidStatus) else None
            problem = parse_refusal(response.status_code, response.body or b"") if response else None
            self.opened.set_exception(problem or KubernetesUnreachable(f"no stream: {error}"))
        if error or self._websocket.parser_exc:
            self._connection.abort()

    def _take_frame(self, frame: Frame) -> None:
        data = bytes(frame.data)
        if frame.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
            if frame.opcode is not Opcode.CONT or self._channel is None:
                self._channel, data = (data[0] if data else None), data[1:]
            self._take_data(data)
        if frame.opcode is Opcode.CLOSE or (frame.fin and self._channel == _ERROR and self._status):
            self._connection.close()
        elif frame.opcode is Opcode.PING and self.get_write_buffer_size() > _MESSAGE_BYTES:
            self._connection.abort()  # it asks for answers that it does not read

    def _take_data(self, data: bytes) -> None:
        if data and self._channel == _STDOUT and not self._is_closing:  # the streams begin with empty messages
            self._protocol.data_received(data)
        elif self._channel == _STDERR:
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES]
        elif self._channel == _ERROR and len(self._status) < _STATUS_BYTES:
            self._status += data

    def _read_failure(self, error: Exception | None) -> Problem | None:
        if not self._status:
            broken = self._websocket.parser_exc or self._websocket.close_rcvd or error or "the connection was closed"
            return KubernetesUnreachable(f"the stream of a command broke off: {broken}")
        try:
            answer = parse_object(self._status)
        except KubernetesUnreachable as problem:
            return problem
        if answer.get("status") == "Success":
            return None
        reason = f"{answer.get('message') or answer.get('reason')}: {self._stderr.decode(errors='replace')}"
        return ExecFailed(f"A command in a container failed: {to_line(reason).rstrip(': ')}")
