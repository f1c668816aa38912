"""One-time sign-in links: their lifetime, their limit, and the requests that use one up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.core.sensitive import Sensitive

LIFETIME = timedelta(seconds=60)
LINK_LIMIT = 10
"""Unused links of an agent; a further one invalidates the oldest."""
CODE_PREFIX = "rst_once"


@dataclass(frozen=True)
class SignInLink:
    """A link to an agent's address; only the digest of its code is stored."""

    origin: str
    code: Sensitive[str]
    expires_at: datetime


def is_navigation(headers: Mapping[str, str], *, secure: bool) -> bool:
    """Return whether a person follows a link; previews of chat programs and prefetches do not count.

    `headers` has lower-case names. Browsers send Fetch Metadata (W3C) over HTTPS and to loopback, so over HTTPS a
    request without it is a program's.
    """
    mode = headers.get("sec-fetch-mode", "" if secure else "navigate")
    purpose = headers.get("sec-purpose", "") + headers.get("purpose", "")
    return mode == "navigate" and "prefetch" not in purpose and "text/html" in headers.get("accept", "")
