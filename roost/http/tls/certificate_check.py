"""Check by a TLS handshake that a valid certificate is served for a name, and say in words why not."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.core.machine.unix_socket import Stream
from roost.core.problem import Problem
from roost.drivers.tls_proxy.contract import TlsProxy


@dataclass(frozen=True)
class CertificateChecker:
    """connect: opens a connection to what terminates TLS for a name. authorities: PEM files beside the system's.

    proxy: our own one, which obtains a missing certificate at the handshake.
    """

    _connect: Callable[[str], Awaitable[Stream]]
    _authorities: Sequence[Path] = ()
    _proxy: TlsProxy | None = None
    _seconds: float = 30.0

    async def check(self, name: str) -> str | None:
        """Return why no valid certificate is served for the name; None if one is."""
        if self._proxy is not None:
            await self._proxy.apply_changes()
        if self._proxy is not None and (seconds := self._proxy.paused_seconds(name)):
            return _describe(name, f"{self._proxy.explain_failure(name)}. The next attempt is in {seconds:.0f} s")
        handshake = asyncio.create_task(self._describe_handshake(name))
        if self._proxy is None:
            return await handshake
        refused = asyncio.create_task(self._proxy.wait_for_failure(name))
        try:
            await asyncio.wait({handshake, refused}, return_when=asyncio.FIRST_COMPLETED)
            return _describe(name, refused.result()) if refused.done() else handshake.result()
        finally:
            handshake.cancel()
            refused.cancel()

    async def _describe_handshake(self, name: str) -> str | None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._shake_hands(name)
        except ssl.SSLCertVerificationError as error:
            return f"The certificate for {name} is not valid: {error.verify_message}"
        except TimeoutError:
            return _describe(name, f"none was served within {self._seconds:.0f} s")
        except Problem as problem:
            return _describe(name, problem.message)
        except ssl.SSLError:
            return _describe(name, "the handshake was refused")
        except OSError as error:
            return _describe(name, os.strerror(error.errno) if error.errno else "the connection was closed")
        return None

    async def _shake_hands(self, name: str) -> None:
        context = ssl.create_default_context()
        for path in self._authorities:
            context.load_verify_locations(path)
        _, writer = await self._connect(name)
        try:
            await writer.start_tls(context, server_hostname=name, ssl_handshake_timeout=self._seconds)
        finally:
            writer.transport.abort()


def _describe(name: str, failure: str) -> str:
    return f"There is no certificate for {name}: {failure}"
