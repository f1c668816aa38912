"""WebSocket protocol of uvicorn with bounded buffers in both directions."""

import asyncio

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from roost.web.websocket import DRAIN_SECONDS

MESSAGE_LIMIT = 16 * 1024
_DRAIN_TIMEOUT = 10.0  # seconds in which a slow client must receive the buffered data, about 64 KiB at most


class BoundedWebSocket(WebSocketsSansIOProtocol):
    _deadline: asyncio.TimerHandle | None = None

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # a rejection is complete, too, and not an error to log

    def pause_writing(self) -> None:
        super().pause_writing()
        seconds = self.scope.get("state", {}).get(DRAIN_SECONDS, _DRAIN_TIMEOUT)
        self._set_deadline(self.loop.call_later(seconds, self.transport.abort))

    def resume_writing(self) -> None:
        self._set_deadline(None)
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        if self.read_paused:  # the application has not taken the last message, so no answer to the ping was read
            self.pending_ping_payload = None
            self.schedule_ping()
        else:
            super().keepalive_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)

    def _set_deadline(self, deadline: asyncio.TimerHandle | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = deadline
