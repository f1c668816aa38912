"""Certificates for servers that stand in for others: an authority of the test's own, and what it signs."""

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        made = _draft(self._name, self._name, self._key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        made = made.add_extension(_usage(signs_certificates=True), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.certificate = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        self.key = _private(self._key)

    def server(self, *hosts: str) -> ssl.SSLContext:
        """The context of a server that is all of these hosts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "server.pem"
            path.write_bytes(self.issue(*hosts))
            context.load_cert_chain(path)
        return context

    def issue(self, *hosts: str) -> bytes:
        """Return a private key and a certificate for these hosts, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = _draft(_named(hosts[0]), self._name, key.public_key())
        made = made.add_extension(alternatives, critical=False).add_extension(issuer, critical=False)
        made = made.add_extension(_usage(signs_certificates=False), critical=True)
        signed = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        return _private(key) + signed


@contextmanager
def untrusted_server() -> Iterator[str]:
    """Run an HTTPS server of an authority that nobody knows, and return its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        server.socket = Authority("Company").server("localhost").wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
