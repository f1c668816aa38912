"""TLS of a bridge's carrier (RFC 8446): both ends have the agent's certificate, and accept no other."""

from __future__ import annotations

import ssl

from .event_loop import READ
from .light_imports import Socket, socket
from .waiting import TimeLimit, wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

HANDSHAKE_SECONDS = 5.0
RECEIVE_BYTES, SEND_BYTES = 256 * 1024, 64 * 1024


def make_tls_context(path: str) -> ssl.SSLContext:
    """Return the context of the end that listens, from a PEM file with a self-signed certificate and its key.

    Raises OSError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # each carrier shows the certificate
    context.load_cert_chain(path)
    context.load_verify_locations(path)
    return context


class TlsSocket(Socket):
    """Connection that encrypts what is sent and received; it takes over the descriptor of a plain one."""

    def __init__(self, sock: Socket, context: ssl.SSLContext) -> None:
        super().__init__(sock.family, fileno=sock.detach())
        if self.family != socket.AF_UNIX:
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received, self._encrypted = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._encrypted, server_side=True)
        self._unsent = memoryview(b"")
        self._unsent_plain = 0

    async def shake_hands(self) -> None:
        """Return when the client has shown the certificate. Raises OSError."""
        with TimeLimit(HANDSHAKE_SECONDS):
            while True:
                try:
                    self._tls.do_handshake()
                    return
                except ssl.SSLWantReadError:
                    pass
                finally:
                    if answer := self._encrypted.read():
                        super().send(answer)  # a few kilobytes, which a new connection has space for
                await wait_until_ready(self.fileno(), READ)
                if not self._fill():
                    raise ConnectionResetError

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """Return as many bytes as there are, of several records: one has at most 16 KiB."""
        received = bytearray()
        while len(received) < bufsize:
            try:
                if not (part := self._tls.read(bufsize - len(received))):
                    break  # the other end has closed it
                received += part
            except ssl.SSLWantReadError:
                if received or not self._fill(flags):
                    break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
        return bytes(received)

    def sendmsg(
        self, buffers: Iterable[Any], ancdata: Iterable[Any] = (), flags: int = 0, address: object = None, /
    ) -> int:
        """Send at most SEND_BYTES; after BlockingIOError, the next call has to begin with the same bytes."""
        assert not ancdata
        assert address is None
        if not self._unsent:
            plain = bytearray()
            for buffer in buffers:
                plain += memoryview(buffer)[: SEND_BYTES - len(plain)]
            self._unsent_plain = len(plain)
            self._tls.write(plain)
            self._unsent = memoryview(self._encrypted.read())
        while self._unsent:
            self._unsent = self._unsent[super().send(self._unsent, flags) :]
        return self._unsent_plain

    def _fill(self, flags: int = 0) -> bool:
        """Receive encrypted bytes; return whether there were some. Raises OSError."""
        data = super().recv(RECEIVE_BYTES, flags)
        self._received.write(data)
        return bool(data)
