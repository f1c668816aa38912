"""Carrier of a bridge over TCP and TLS (RFC 8446), for wardens that the server reaches by address.

Each agent has a key of its own with a self-signed certificate. Both ends show it and accept no other, so that the
address of a container need not be trusted, and another container gets no further than the handshake.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import Bridge

_HANDSHAKE_SECONDS = 5.0
_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)  # RFC 5280, section 4.1.2.5: no expiration is known
_CLOCK_SKEW = timedelta(days=1)


def make_bridge_certificate(agent_id: str) -> Sensitive[str]:
    """Make the key of an agent's bridge; return it with its certificate, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, agent_id)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(clock.utc_now() - _CLOCK_SKEW).not_valid_after(_NEVER)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return Sensitive((key.private_bytes(encoding, form, serialization.NoEncryption()) + certificate).decode())


def make_bridge_context(certificate: Sensitive[str]) -> ssl.SSLContext:
    """Return the context of the server's end. Raises ssl.SSLError for a damaged certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate is the only one that is accepted
    _use_certificate(context, certificate)
    return context


def _use_certificate(context: ssl.SSLContext, certificate: Sensitive[str]) -> None:
    """Show a certificate, and accept no other."""
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    fd = os.memfd_create("certificate")  # the module reads keys from files only
    try:
        os.write(fd, certificate.reveal().encode())
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    context.load_verify_locations(cadata=certificate.reveal())


async def open_tls_carrier(host: str, port: int, context: ssl.SSLContext, bridge: Bridge) -> None:
    """Make a bridge the protocol of a new carrier. Raises OSError, ssl.SSLError among them."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_HANDSHAKE_SECONDS):
        await loop.create_connection(lambda: bridge, host, port, ssl=context)


async def listen_tls_carriers(
    host: str | None, port: int, certificate: Sensitive[str], accept: Callable[[], asyncio.Protocol]
) -> asyncio.Server:
    """Make a protocol for each carrier that is opened at a port of this machine. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # each carrier shows the certificate
    _use_certificate(context, certificate)
    loop = asyncio.get_running_loop()
    return await loop.create_server(accept, host, port, ssl=context, ssl_handshake_timeout=_HANDSHAKE_SECONDS)
