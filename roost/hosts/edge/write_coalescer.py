"""What an application sends in one breath goes out as one: the head of an answer waits for the body right behind it.

It waits for no longer than the present turn of the loop. A write of its own would cost the system, and whoever is at
the other end, as much as that of the body.
"""

import asyncio


class WriteCoalescer:
    """Stands before the transport of a connection while one request is answered."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._has_begun = False

    def write(self, data: bytes) -> None:
        if self._head is not None and data:  # some loops are never done with a line of nothing
            head, self._head = self._head, None
            self._transport.writelines((head, data))
        elif self._head is not None:
            self.flush()
        elif self._has_begun:
            self._transport.write(data)
        else:
            self._has_begun, self._head = True, data
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Let the head go, before anybody else writes."""
        head, self._head = self._head, None
        if head is not None and not self._transport.is_closing():
            self._transport.write(head)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()
