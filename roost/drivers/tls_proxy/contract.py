"""Contract of TLS proxies: what the server asks of the program in front of it."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.core.problem import ServiceUnavailable
from roost.net.addresses import Network


class TlsProxyFailed(ServiceUnavailable):
    message = "The TLS proxy did not start"


@dataclass(frozen=True)
class TlsListeners:
    """Bound sockets: TCP and UDP on the port for HTTPS, TCP on the port for HTTP."""

    https: socket.socket
    quic: socket.socket
    http: socket.socket

    @property
    def port(self) -> int:
        return self.https.getsockname()[1]

    def descriptors(self) -> tuple[int, int, int]:
        return self.https.fileno(), self.quic.fileno(), self.http.fileno()

    def close(self) -> None:
        for listener in (self.https, self.quic, self.http):
            listener.close()


@dataclass(frozen=True)
class TlsOptions:
    """How TLS is served.

    permission_url: answers 200 with `?domain=NAME` for the names that get a certificate. backend: the server's socket,
    relative to the proxy's folder. public_port: the port in redirects. acme_ca: authorities that the ACME server's own
    certificate is checked with. certificate, key: PEM files of the operator.
    """

    domain: str
    permission_url: str
    backend: str
    public_port: int
    http_port: int
    acme_url: str
    email: str | None = None
    acme_ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    trusted_proxies: Sequence[Network] = ()


class TlsProxy(ABC):
    """A TLS proxy. It ends with the server."""

    @abstractmethod
    async def start(self) -> None:
        """Start it, and again whenever it ends. Raises TlsProxyFailed."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop it for good, and close its sockets. Idempotent."""

    @abstractmethod
    def explain_failure(self, name: str) -> str | None:
        """Return why the name got no certificate, in words; None if none was refused."""

    @abstractmethod
    async def wait_for_failure(self, name: str) -> str:
        """Return why the name gets no certificate, as soon as the ACME server refuses it."""

    @abstractmethod
    def paused_seconds(self, name: str) -> float:
        """Return how long the name has to wait, because the ACME server refused it a moment ago; 0 if it does not."""

    @abstractmethod
    def drop_name(self, name: str) -> None:
        """Refuse handshakes for a name that had a certificate."""

    @abstractmethod
    def restore_name(self, name: str) -> None:
        """Serve a name again that was dropped."""

    @abstractmethod
    async def apply_changes(self) -> None:
        """Return when all names are dropped or restored, which otherwise takes a moment."""
