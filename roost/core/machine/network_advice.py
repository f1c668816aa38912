"""What to configure when a certificate is not accepted or nothing is reached: behind a proxy or authority of one's own.

`scripts/setup.py` uses it, too, so it imports the standard library only.
"""

import socket
import ssl
from collections.abc import Iterator

_CERTIFICATE = (  # as OpenSSL, Python, Node and npm say it
    "certificate verify failed",
    "self-signed certificate",
    "self signed certificate",
    "unable to get issuer cert",
    "unable to get local issuer certificate",
    "unable to verify the first certificate",
    "SELF_SIGNED_CERT",
    "DEPTH_ZERO_SELF_SIGNED",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
)
_PROXY_FAILURES = ("ProxyError", "Cannot connect to proxy", "Tunnel connection failed", "Proxy Authentication Required")
_UNREACHABLE = """
    NewConnectionError NameResolutionError ConnectTimeoutError ReadTimeoutError ConnectError
    ECONNREFUSED ECONNRESET ENETUNREACH EHOSTUNREACH ETIMEDOUT ENOTFOUND EAI_AGAIN
""".split()  # as pip, urllib3, Node and npm say it
_CERTIFICATE_ADVICE = (
    "A certificate is not accepted. If its authority is your own, name the authority's PEM file: PIP_CERT for pip, "
    "NODE_EXTRA_CA_CERTS for npm, SSL_CERT_FILE for the server and the command line, the setting ca_file for agents"
)
_UNREACHABLE_ADVICE = (
    "The service is not reached. If a proxy leads out, name it: HTTPS_PROXY=http://HOST:PORT for pip, npm and the "
    "server. If you have package registries of your own: PIP_INDEX_URL and npm_config_registry"
)
NOT_RESOLVED = "its name cannot be resolved"
NOT_ENCRYPTED = "the encrypted connection failed"
_REASONS = (  # classes of httpx, requests and of Python, the special ones first
    ("ProxyError", "the proxy does not let the connection through"),
    ("UnsupportedProtocol", "its address is no URL of HTTP"),
    ("InvalidURL", "its address is no URL of HTTP"),
    ("SSLError", NOT_ENCRYPTED),
    ("RemoteProtocolError", "it closed the connection, or did not answer in HTTP"),
    ("DecodingError", "it sent a body that cannot be decoded"),
    ("ReadError", "it closed the connection"),
    ("WriteError", "it closed the connection"),
    ("ConnectionResetError", "it closed the connection"),
    ("ConnectError", "it cannot be reached"),
    ("ConnectionError", "it cannot be reached"),
    ("OSError", "it cannot be reached"),
)


def advise_network(output: str) -> str:
    """Return what to configure if the output of a program shows such an error, an empty string otherwise."""
    if any(sign in output for sign in _CERTIFICATE):
        return _CERTIFICATE_ADVICE
    return _UNREACHABLE_ADVICE if any(sign in output for sign in (*_PROXY_FAILURES, *_UNREACHABLE)) else ""


def describe_certificate_error(error: BaseException | None) -> str:
    """Return what is wrong with a peer's certificate if that caused the error, an empty string otherwise."""
    return next((one.verify_message for one in list_causes(error) if isinstance(one, ssl.SSLCertVerificationError)), "")


def describe_network_error(error: BaseException) -> str:
    """Return why a request got no answer, as a person says it, whatever the library that raised the error.

    Its subject is the server that was asked: "it refuses connections".
    """
    if certificate := describe_certificate_error(error):
        return f"its certificate is not accepted: {certificate}"
    causes = list(list_causes(error))
    names = {name for one in causes for name in (kind.__name__ for kind in type(one).__mro__)}
    text = " ".join(str(one) for one in causes).lower()
    if any(isinstance(one, socket.gaierror) for one in causes) or "name or service not known" in text:
        return NOT_RESOLVED
    if "ConnectionRefusedError" in names or "refused" in text:
        return "it refuses connections"
    if any("Timeout" in name for name in names):
        return "it did not answer in time"
    return next((reason for name, reason in _REASONS if name in names), "the request failed")


def list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and what it was raised for."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
