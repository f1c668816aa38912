"""A request for an agent whose server is not known yet: it waits until that is read, and is then answered."""

import asyncio
from collections.abc import Awaitable, Callable

from roost.core import log
from roost.http.server.http_connection import Exchange, HttpConnection

_log = log.get_logger(__name__)
_MAX_HELD = 64 * 1024


class PendingExchange:
    """One request and the two that may answer it.

    own: answers if this server has the agent; None for a WebSocket of the application. find_other: returns what answers
    if another server has it, else None. hand_over: gives the connection to the application's WebSocket, with what came
    after the head.
    """

    def __init__(
        self,
        client: HttpConnection,
        own: Exchange | None,
        find_other: Callable[[], Awaitable[Exchange | None]],
        hand_over: Callable[[bytes], None],
    ) -> None:
        self._client, self._own, self._find_other, self._hand_over = client, own, find_other, hand_over
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._held = bytearray()
        self._is_uploaded = self._closes = False

    def start(self) -> None:
        self._client.set_deadline(self._client.limits.first_head)
        self._task = self._client.loop.create_task(self._answer())

    def receive_body(self, data: bytes) -> None:
        if self._exchange is not None:
            self._exchange.receive_body(data)
            return
        self._held += data  # one buffer: a client decides how many chunks there are
        if len(self._held) > _MAX_HELD:
            self._client.flow.pause_reading()

    def end_body(self) -> None:
        self._is_uploaded = True
        if self._exchange is not None:
            self._exchange.end_body()

    def disable_keep_alive(self) -> None:
        self._closes = True
        if self._exchange is not None:
            self._exchange.disable_keep_alive()

    def disconnect(self) -> bool:
        if self._task is not None:
            self._task.cancel()
        return self._exchange is not None and self._exchange.disconnect()

    def pause_response(self) -> None:
        if self._exchange is not None:
            self._exchange.pause_response()

    def resume_response(self) -> None:
        if self._exchange is not None:
            self._exchange.resume_response()

    def check_time(self) -> None:
        if self._exchange is not None:
            self._exchange.check_time()
        else:
            self._client.transport.abort()

    async def _answer(self) -> None:
        try:
            self._begin(await self._find_other() or self._own)
        except Exception:  # noqa: BLE001 - the edge of a request
            _log.exception("request.failed")
            self._client.transport.abort()

    def _begin(self, exchange: Exchange | None) -> None:
        """Give all that came before to what answers, in the order of a connection: the body, then the start."""
        self._task, self._exchange = None, exchange
        held, flow = bytes(self._held), self._client.flow
        self._held.clear()
        flow.resume_reading()
        if exchange is None:
            self._hand_over(held)
            return
        if self._closes:
            exchange.disable_keep_alive()
        if held:
            exchange.receive_body(held)
        if self._is_uploaded:
            exchange.end_body()
        exchange.start()
        if flow.write_paused and not self._client.transport.is_closing():  # by an earlier response
            exchange.pause_response()
