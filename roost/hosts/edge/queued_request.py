"""What stands in the server's queue of one connection for a request that the application does not answer."""

import asyncio
from http import HTTPStatus


class QueuedRequest:
    """One request that is answered without the application, when its turn has come.

    It stands where uvicorn keeps its own cycle, which reads and writes the four public attributes.
    """

    def __init__(self, *, keep_alive: bool) -> None:
        self.response_complete = False
        self.disconnected = False
        self.keep_alive = keep_alive
        self.message_event = asyncio.Event()

    def start(self) -> None:
        """Begin to answer."""

    def upload(self, data: bytes) -> None:
        """A part of the request's body; after a switch of protocols, whatever came."""

    def uploaded(self) -> None:
        """The request is complete."""

    def spoil(self, status: HTTPStatus, message: str) -> None:
        """The rest of the request cannot be understood."""

    def half_closed(self) -> bool:
        """The client sends no more. Whether the connection stays open for the answer."""
        return False

    def lost(self) -> None:
        """The client has gone."""

    def client_full(self) -> None:
        """The client does not take what is written for it."""

    def client_ready(self) -> None:
        """The client takes more again."""
