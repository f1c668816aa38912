"""What to configure when a certificate is not accepted or nothing is reached: behind a proxy or authority of one's own.

`scripts/setup.py` uses it, too, so it imports the standard library only.
"""

import ssl

_CERTIFICATE = (  # as OpenSSL, Python, Node and npm say it
    *("certificate verify failed", "self-signed certificate", "self signed certificate", "unable to get issuer cert"),
    *("unable to get local issuer certificate", "unable to verify the first certificate"),
    *("SELF_SIGNED_CERT", "DEPTH_ZERO_SELF_SIGNED", "UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
)
_UNREACHABLE = (  # as pip, urllib3, Node and npm say it
    *("ProxyError", "Cannot connect to proxy", "Tunnel connection failed", "Proxy Authentication Required"),
    *("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ReadTimeoutError", "ConnectError"),
    *("ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"),
)
_CERTIFICATE_ADVICE = (
    "A certificate is not accepted. If its authority is your own, name the authority's PEM file: PIP_CERT for pip, "
    "NODE_EXTRA_CA_CERTS for npm, SSL_CERT_FILE for the server and the command line, the setting ca_file for agents"
)
_UNREACHABLE_ADVICE = (
    "The service is not reached. If a proxy leads out, name it: HTTPS_PROXY=http://HOST:PORT for pip, npm and the "
    "server. If you have package registries of your own: PIP_INDEX_URL and npm_config_registry"
)


def advise_network(output: str) -> str:
    """Return what to configure if the output of a program shows such an error, an empty string otherwise."""
    if any(sign in output for sign in _CERTIFICATE):
        return _CERTIFICATE_ADVICE
    return _UNREACHABLE_ADVICE if any(sign in output for sign in _UNREACHABLE) else ""


def describe_certificate_error(error: BaseException | None) -> str:
    """Return what is wrong with a peer's certificate if that caused the error, an empty string otherwise."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return "" if error is None else error.verify_message
