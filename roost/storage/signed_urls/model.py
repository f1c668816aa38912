"""Signed addresses as text: what is signed, how it is written, and when it counts. Pure; no key is known here.

Signed are the tenant, the host name, the path and every parameter: nothing can be left out, added or changed. Scheme
and port are not, because a proxy in front may have others.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from roost.storage.signed_urls.errors import InvalidSignedUrl, SignedUrlExpired, SignedUrlRefused

DOWNLOAD, UPLOAD = "PINATA1", "PINATA2"
"""What a link is for, as `X-Algorithm` says it."""
SIGNATURE = "X-Signature"
URL_LIMIT = 8192
_FREE = frozenset({"name", "keyvalues", "filename", "filetype"})
_SKEW = timedelta(minutes=5)
_LONGEST = timedelta(days=366)
_LATEST = 253_402_300_799 - 400 * 86_400  # a year before the calendar ends

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ValidityPeriod:
    """When a link counts: from `date` (seconds since 1970) on for `expires` seconds."""

    date: int
    expires: int

    def __post_init__(self) -> None:
        if not 0 <= self.date <= _LATEST or not 0 < self.expires <= _LONGEST.total_seconds():
            raise InvalidSignedUrl("date and expires must be a time and a number of seconds of at most a year")

    @property
    def end(self) -> datetime:
        return datetime.fromtimestamp(self.date + self.expires, UTC)

    def check(self, now: datetime) -> None:
        """A client's clock may be five minutes ahead of ours. Raises LinkExpired."""
        if not datetime.fromtimestamp(self.date, UTC) - _SKEW <= now < self.end:
            raise SignedUrlExpired


@dataclass(frozen=True)
class UploadGrant:
    """Leave to upload one file under an id that is promised.

    fields: what the file is to be, in the words of upload forms (`network`, `group_id` ...); they count before the
    form's own. mime_types: those that may come, all when empty. max_size: bytes, no more than the tenant's plan allows.
    """

    tenant_id: str
    file_id: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    max_size: int | None = None
    mime_types: Sequence[str] = ()

    def over(self, fields: Mapping[str, str]) -> Mapping[str, str]:
        """What the file is to be, when the uploader says `fields`: of these only what changes nothing for others."""
        return {**{name: text for name, text in fields.items() if name in _FREE}, **self.fields}

    def options(self) -> str:
        """What it says beside the ids, as one parameter."""
        said = {"fields": dict(self.fields), "max_size": self.max_size, "mime_types": list(self.mime_types)}
        return base64.urlsafe_b64encode(json.dumps(said, ensure_ascii=False).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, tenant_id: str, file_id: str, options: str) -> Self:
        """From options that we wrote: their signature was checked. Raises LinkRefused."""
        try:
            said = cast("dict[str, Any]", json.loads(base64.urlsafe_b64decode(options + "=" * (-len(options) % 4))))
        except (ValueError, binascii.Error):
            raise SignedUrlRefused from None
        return cls(tenant_id, file_id, said["fields"], said["max_size"], tuple(said["mime_types"]))


@dataclass(frozen=True)
class SignedAddress:
    """The parts of an address that a signature is about. `base` is everything before the parameters, as written."""

    base: str
    host: str
    path: str
    pairs: Pairs

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises InvalidLink."""
        try:
            parts = urlsplit(url)
            pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64)
            host = parts.hostname
        except ValueError:
            raise InvalidSignedUrl from None
        plain = url.isascii() and url.isprintable() and len(url) <= URL_LIMIT
        if not plain or parts.scheme not in {"http", "https"} or not host or "#" in url or "@" in parts.netloc:
            raise InvalidSignedUrl
        return cls(url.partition("?")[0], host.lower(), unquote(parts.path), pairs)

    def only(self, name: str) -> str:
        """A parameter that has to be there once. Raises LinkRefused."""
        found = [value for key, value in self.pairs if key == name]
        if len(found) != 1:
            raise SignedUrlRefused
        return found[0]

    def window(self) -> ValidityPeriod:
        """Raises LinkRefused."""
        date, expires = self.only("X-Date"), self.only("X-Expires")
        if not (_is_number(date) and _is_number(expires)):
            raise SignedUrlRefused
        try:
            return ValidityPeriod(int(date), int(expires))
        except InvalidSignedUrl:
            raise SignedUrlRefused from None

    def message(self, tenant_id: str) -> bytes:
        """What is signed: unambiguous, and the same in whatever order the parameters come."""
        pairs = sorted(pair for pair in self.pairs if pair[0] != SIGNATURE)
        return json.dumps([tenant_id, self.host, self.path, pairs]).encode()

    def extended(self, more: Pairs) -> "SignedAddress":
        return SignedAddress(self.base, self.host, self.path, [*self.pairs, *more])

    def __str__(self) -> str:
        return f"{self.base}?{urlencode(self.pairs)}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
