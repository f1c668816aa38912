"""Credentials in requests: where they stand and how they are encoded. Only authentication reads them."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import parse_qsl, quote

COOKIE = "gw_token"
SESSION_COOKIE = "roost_session"
_HOST_ONLY = "__Host-"  # browsers accept such a cookie from this host alone (RFC 6265bis, 4.1.3)
_SESSION_SECONDS = 7 * 24 * 3600
_SPACE = " \t"  # RFC 9110, 5.6.3; Python's own also has characters beyond ASCII
BASIC_CHALLENGE = 'Basic realm="Roost"'


KEY_PAIR_HEADERS = ("pinata_api_key", "pinata_secret_api_key")
"""Headers of old storage clients for a key's handle and secret."""


class CredentialSource(Enum):
    HEADER = auto()
    QUERY = auto()
    COOKIE = auto()


@dataclass(slots=True)  # to freeze it would double the time to make one
class Credential:
    token: str
    source: CredentialSource = CredentialSource.HEADER


def find_credential(headers: Mapping[str, str], query: str) -> Credential | None:
    """Find the credential of a request; `headers` has lower-case names, `query` is the raw query string."""
    if authorization := headers.get("authorization"):
        scheme, _, token = authorization.partition(" ")
        return Credential(token.strip() if scheme.lower() == "bearer" else "")
    if "token=" in query:
        for name, value in parse_qsl(query):
            if name == "token":
                return Credential(value, CredentialSource.QUERY)
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.partition("=")
        if name.strip(_SPACE) == COOKIE:  # the edge removes exactly these before a program gets the request
            return Credential(value.strip(_SPACE).strip('"'), CredentialSource.COOKIE)
    return None


def find_cookie(headers: Mapping[str, str], name: str) -> str | None:
    """Return the value of a cookie; empty if several have the name, because a page of another host can add one."""
    pairs = [pair.partition("=") for pair in headers.get("cookie", "").split(";")]
    values = [value.strip(_SPACE) for key, _, value in pairs if key.strip(_SPACE) == name]
    return None if not values else values[0] if len(values) == 1 else ""


def session_cookie(scheme: str, prefix: str = "") -> str:
    """Return the name of a session's cookie in browsers; `prefix` where other ports of the host get it, too."""
    return f"{_HOST_ONLY if scheme == 'https' else ''}{prefix}{SESSION_COOKIE}"


def find_key_pair(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return a key's handle and secret from the headers of old storage clients; `Authorization` takes precedence."""
    handle, secret = map(headers.get, KEY_PAIR_HEADERS)
    return (handle, secret) if handle and secret and "authorization" not in headers else None


def find_password(headers: Mapping[str, str]) -> str | None:
    """Return the password of HTTP Basic (RFC 7617), empty if it is malformed, None without any credential."""
    if not (authorization := headers.get("authorization")):
        return None
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def sign_in_headers(token: str, origin: str, target: str, cookie_prefix: str = "") -> Mapping[str, str]:
    """Return the headers of a redirect to `target` at an agent's own address, with its token as the cookie.

    So the token stays in no history, bookmark or Referer.
    """
    secure = "; Secure" if origin.startswith("https:") else ""
    return {
        "location": origin + target,
        "set-cookie": f"{cookie_prefix}{COOKIE}={quote(token)}; Path=/; HttpOnly; SameSite=Lax{secure}",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
    }


def session_headers(name: str, token: str, origin: str, seconds: int = _SESSION_SECONDS) -> Mapping[str, str]:
    """Return the headers of a response that gives a browser the cookie of its session at `origin`."""
    secure = "; Secure" if origin.startswith("https:") else ""
    return {
        "set-cookie": f"{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
        "cache-control": "no-store",
    }


def ended_session_headers(name: str, origin: str) -> Mapping[str, str]:
    """Return the headers of a response that takes that cookie away."""
    return session_headers(name, "", origin, 0)


def is_gateway_token(credential: Credential) -> bool:
    """Return whether a credential is meant as a gateway token."""
    return credential.source is CredentialSource.COOKIE or credential.token.startswith("rst_")
