"""Large bodies are read in large pieces: what one costs on its way to the application, it costs whatever its size.

A protocol is given what was read, at most 256 KiB of it; one that lends its memory is given as much as that takes. The
memory is one for all connections of a loop, and is free again when the connection has looked at what is in it.
"""

import asyncio
import threading
from typing import Protocol

READ = 1024**2
"""Bytes that are read at a time."""
WORTH = 128 * 1024
"""A read of so much of a body says that there is more than one read takes."""


class ReadProtocol(Protocol):
    """A connection."""

    def data_received(self, data: bytes | memoryview) -> None:
        """`data` counts until this returns."""
        ...

    def eof_received(self) -> bool | None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class _ReadBuffer(threading.local):
    """Of the loop that runs in this thread."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ))


_memory = _ReadBuffer()


class LargeReadProtocol(asyncio.BufferedProtocol):
    """Stands in the place of a connection, to whom all is told, while a large body comes."""

    def __init__(self, line: ReadProtocol) -> None:
        self._line = line

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return _memory.view

    def buffer_updated(self, nbytes: int) -> None:
        self._line.data_received(_memory.view[:nbytes])

    def eof_received(self) -> bool | None:
        return self._line.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._line.connection_lost(exc)

    def pause_writing(self) -> None:
        self._line.pause_writing()

    def resume_writing(self) -> None:
        self._line.resume_writing()
