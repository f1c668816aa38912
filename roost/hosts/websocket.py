"""The WebSocket side of the server: uvicorn's protocol, bounded. Clients are listened to only for their leaving."""

import asyncio

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MESSAGE_LIMIT = 16 * 1024
_TAKING = 10.0  # seconds in which a client that is behind has to take what waits for it, at most some 64 KiB


class BoundedWebSocket(WebSocketsSansIOProtocol):
    _deadline: asyncio.TimerHandle | None = None

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # a refusal is an end, too, and no error of ours to log

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect(self.loop.call_later(_TAKING, self.transport.abort))

    def resume_writing(self) -> None:
        self._expect(None)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def _expect(self, deadline: asyncio.TimerHandle | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = deadline
