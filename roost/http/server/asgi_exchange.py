"""A request that the ASGI application answers, through uvicorn's request cycle."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from roost.http.server.http_connection import HttpConnection
from roost.http.server.request_head import RequestHead

_log = logging.getLogger("uvicorn.error")


class ResponseWriter:
    """The transport of one response: its head waits, within a turn of the loop, to share a write with the body."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head: bytes | None = None
        self._has_begun = False

    def write(self, data: bytes) -> None:
        if not self._has_begun:
            self._has_begun, self._head = True, data
            self._loop.call_soon(self.flush)
        elif self._head is not None and data:
            head, self._head = self._head, None
            self._transport.writelines((head, data))
        else:
            self.flush()
            self._transport.write(data)

    def flush(self) -> None:
        head, self._head = self._head, None
        if head is not None and not self._transport.is_closing():
            self._transport.write(head)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()


class AsgiExchange:
    def __init__(self, client: HttpConnection, head: RequestHead, state: Mapping[str, object] | None = None) -> None:
        """state: added to `scope["state"]`."""
        self._client, self._writer = client, ResponseWriter(client.transport, client.loop)
        self._cycle = RequestResponseCycle(
            scope=cast("Any", _http_scope(client, head, state or {})),
            transport=cast("Any", self._writer),
            flow=client.flow,
            logger=_log,
            access_logger=_log,
            access_log=False,  # uvicorn's line holds the query, and so tokens
            default_headers=client.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=head.headers.expects,
            keep_alive=head.headers.version == "1.1" and client.parser.should_keep_alive(),
            on_response=self._complete,
        )

    def start(self) -> None:
        client = self._client
        client.set_deadline(None)
        task = client.loop.create_task(self._cycle.run_asgi(cast("Any", client.config.loaded_app)))
        task.add_done_callback(client.server_state.tasks.discard)
        client.server_state.tasks.add(task)

    def receive_body(self, data: bytes) -> None:
        body = cast("bytes | bytearray", self._cycle.body)
        if not body:  # as it is: uvicorn would copy it here, and again for the application
            body = data
        elif isinstance(body, bytes):  # else each of many small chunks would copy all before it
            body = bytearray(body) + data
        else:
            body += data
        self._cycle.body = cast("bytearray", body)
        if len(body) > HIGH_WATER_LIMIT:
            self._client.flow.pause_reading()
        self._cycle.message_event.set()

    def end_body(self) -> None:
        self._cycle.more_body = False
        self._cycle.message_event.set()

    def disable_keep_alive(self) -> None:
        self._cycle.keep_alive = False

    def disconnect(self) -> bool:
        self._cycle.disconnected = True
        self._cycle.waiting_for_100_continue = False
        self._cycle.message_event.set()
        return self._cycle.response_started

    def pause_response(self) -> None:
        self._client.check_writing()

    def resume_response(self) -> None:
        self._client.set_deadline(None)

    def check_time(self) -> None:
        self._client.check_writing()

    def _complete(self) -> None:
        self._writer.flush()  # a response without a body
        self._client.complete_response(keep_alive=True)  # uvicorn closes the connection itself


def _http_scope(client: HttpConnection, head: RequestHead, state: Mapping[str, object]) -> dict[str, Any]:
    """Return the connection scope (ASGI HTTP 2.3)."""
    path, _, query = head.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": client.config.asgi_version, "spec_version": "2.3"},
        "http_version": head.headers.version,
        "method": head.method.decode(),
        "scheme": "http",  # TLS ends in a proxy in front
        "path": unquote(path.decode()),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(head.headers.lines),
        "client": client.client,
        "server": client.server,
        "state": {**client.app_state, **state},
    }
