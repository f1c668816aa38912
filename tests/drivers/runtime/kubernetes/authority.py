"""An authority for certificates of tests."""

import datetime as dt
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NEVER = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


class Authority:
    """An authority that signs certificates for names."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        self.pem, _ = self.sign("authority", self._key, is_authority=True)

    def sign(self, name: str, key: Any = None, *, is_authority: bool = False) -> tuple[bytes, bytes]:
        """Return a certificate and its key as PEM."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC)).not_valid_after(NEVER)
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        own, issuer = key.public_key(), self._key.public_key()
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return pem, key.private_bytes(serialization.Encoding.PEM, *form)

    def make_context(self, folder: Path, name: str) -> ssl.SSLContext:
        """Return the context of a server of that name."""
        pem, key = self.sign(name)
        (folder / "server.pem").write_bytes(key + pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        return context
