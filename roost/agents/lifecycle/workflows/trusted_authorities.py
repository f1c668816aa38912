"""Certificate authorities that agents' programs trust: those of the system and those that the operator adds."""

import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from roost.agents.lifecycle.workflows.model import TrustedAuthorities
from roost.core.problem import InvalidInput

_ADDED, _ALL = "/run/trust/added.pem", "/run/trust/all.pem"
_SYSTEM = (  # of Debian, Fedora, SUSE and Alpine; the same here and in containers
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
_ENV = {
    "NODE_EXTRA_CA_CERTS": _ADDED,  # in addition to those of Node; each one costs time at a start
    **dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"), _ALL),
}


class InvalidAuthorities(InvalidInput):
    """The setting `ca_file` names a file without usable certificates."""


def load_authorities(ca_file: Path | None, system: Sequence[Path] = _SYSTEM) -> TrustedAuthorities:
    """Read the authorities of the operator and the system; none without a `ca_file`. Raises InvalidAuthorities."""
    if ca_file is None:
        return TrustedAuthorities()
    added = _certificates(ca_file)
    bundle = next((path for path in system if path.is_file()), None)
    if bundle is None:
        raise InvalidAuthorities(
            "ca_file: this system has no certificate authorities to add to; install ca-certificates"
        )
    return TrustedAuthorities({_ADDED: added, _ALL: bundle.read_bytes().rstrip() + b"\n" + added}, _ENV)


def _certificates(path: Path) -> bytes:
    """Return only the certificates of the file, which may also hold a private key."""
    try:
        found = _CERTIFICATE.findall(path.read_bytes())
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=b"\n".join(found).decode("ascii"))
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise InvalidAuthorities(f"ca_file: {path} could not be read as PEM certificates: {error}") from None
    return b"\n".join([*found, b""])
