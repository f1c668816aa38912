"""Whom an agent's programs trust: the system's certificate authorities, and those of a company or a test that the
operator adds. It writes the two files that boxes see, and refuses a file in which there is no certificate.
"""

import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from roost.agents.lifecycle.model import TrustedAuthorities
from roost.core.problem import InvalidInput
from roost.drivers.runtime.contract import ReadOnlyMount

PLACE = "/run/trust"
_ADDED, _ALL = "added.pem", "all.pem"
_SYSTEM = (  # of Debian, Fedora, SUSE and Alpine; the same on host and in box
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
_ENV = {
    "NODE_EXTRA_CA_CERTS": f"{PLACE}/{_ADDED}",  # beside those that Node brings; each one costs time at a start
    **dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"), f"{PLACE}/{_ALL}"),
}


class InvalidAuthorities(InvalidInput):
    """The setting `ca_file` names something that cannot be trusted; the message says why."""


def establish(ca_file: Path | None, folder: Path, system: Sequence[Path] = _SYSTEM) -> TrustedAuthorities:
    """Write what boxes are to trust into `folder`. Without a file there is nothing to add. Raises BadAuthorities."""
    if ca_file is None:
        return TrustedAuthorities()
    added = _certificates(ca_file)
    bundle = next((path for path in system if path.is_file()), None)
    if bundle is None:
        raise InvalidAuthorities(
            "ca_file: this system has no certificate authorities to add to; install ca-certificates"
        )
    folder.mkdir(mode=0o755, exist_ok=True)
    _put(folder / _ADDED, added)
    _put(folder / _ALL, bundle.read_bytes().rstrip() + b"\n" + added)
    return TrustedAuthorities((ReadOnlyMount(folder, PLACE),), _ENV)


def _certificates(path: Path) -> bytes:
    """The certificates alone: whatever else is in the file, a private key perhaps, is nothing for a box."""
    try:
        found = _CERTIFICATE.findall(path.read_bytes())
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=b"\n".join(found).decode("ascii"))
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise InvalidAuthorities(f"ca_file: {path} could not be read as PEM certificates: {error}") from None
    return b"\n".join([*found, b""])


def _put(path: Path, content: bytes) -> None:
    """Whole or not at all: boxes that run already may be reading it."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.chmod(0o644)
    draft.replace(path)
