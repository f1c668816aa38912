"""Format of signed URLs, without keys.

The signature covers the tenant, the host name, the path and all parameters. It does not cover scheme and port, because
a reverse proxy may change them.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from roost.core.problem import AccessDenied, InvalidInput


class InvalidSignedUrl(InvalidInput):
    message = "Invalid url"


class SignedUrlRefused(AccessDenied):
    """The signature is invalid or belongs to another request."""

    message = "Invalid signature"


class SignedUrlExpired(AccessDenied):
    message = "The signed url is not valid at this time"


DOWNLOAD, UPLOAD = "PINATA1", "PINATA2"
"""Values of `X-Algorithm`: the purpose of a URL."""
SIGNATURE = "X-Signature"
URL_LIMIT = 8192
_UPLOADER_FIELDS = frozenset({"name", "keyvalues", "filename", "filetype"})
_CLOCK_SKEW = timedelta(minutes=5)
_MAX_VALIDITY = timedelta(days=366)
_LATEST = 253_402_300_799 - 400 * 86_400  # a year before the calendar ends

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ValidityPeriod:
    """Validity of a URL: `expires` seconds from `date` (Unix seconds)."""

    date: int
    expires: int

    def __post_init__(self) -> None:
        if not 0 <= self.date <= _LATEST or not 0 < self.expires <= _MAX_VALIDITY.total_seconds():
            raise InvalidSignedUrl("date must be Unix seconds and expires 1 to 31622400 seconds")

    @property
    def end(self) -> datetime:
        return datetime.fromtimestamp(self.date + self.expires, UTC)

    def check(self, now: datetime) -> None:
        """Check the time, allowing five minutes of clock skew. Raises SignedUrlExpired."""
        if not datetime.fromtimestamp(self.date, UTC) - _CLOCK_SKEW <= now < self.end:
            raise SignedUrlExpired


@dataclass(frozen=True)
class UploadGrant:
    """Permission to upload one file under a reserved id.

    fields: upload form fields (`network`, `group_id` ...) that override those of the form. mime_types: allowed types,
    all if empty. max_size: bytes, within the limit of the tenant's plan.
    """

    tenant_id: str
    file_id: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    max_size: int | None = None
    mime_types: Sequence[str] = ()

    def merge_fields(self, fields: Mapping[str, str]) -> Mapping[str, str]:
        """Merge the harmless fields of the uploader with the granted ones, which win."""
        return {**{name: text for name, text in fields.items() if name in _UPLOADER_FIELDS}, **self.fields}

    def encode_options(self) -> str:
        """Encode the grant, without its ids, as one parameter."""
        values = {"fields": dict(self.fields), "max_size": self.max_size, "mime_types": list(self.mime_types)}
        return base64.urlsafe_b64encode(json.dumps(values, ensure_ascii=False).encode()).decode().rstrip("=")

    @classmethod
    def from_options(cls, tenant_id: str, file_id: str, options: str) -> Self:
        """Decode options whose signature was verified. Raises SignedUrlRefused."""
        try:
            values = cast("dict[str, Any]", json.loads(base64.urlsafe_b64decode(options + "=" * (-len(options) % 4))))
        except (ValueError, binascii.Error):
            raise SignedUrlRefused from None
        return cls(tenant_id, file_id, values["fields"], values["max_size"], tuple(values["mime_types"]))


@dataclass(frozen=True)
class SignedAddress:
    """Signed parts of a URL; `base` is the unchanged text before the parameters."""

    base: str
    host: str
    path: str
    pairs: Pairs

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse a URL. Raises InvalidSignedUrl."""
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

    def get_single(self, name: str) -> str:
        """Return a parameter that must occur once. Raises SignedUrlRefused."""
        found = [value for key, value in self.pairs if key == name]
        if len(found) != 1:
            raise SignedUrlRefused
        return found[0]

    def validity_period(self) -> ValidityPeriod:
        """Parse the validity. Raises SignedUrlRefused."""
        date, expires = self.get_single("X-Date"), self.get_single("X-Expires")
        if not (_is_number(date) and _is_number(expires)):
            raise SignedUrlRefused
        try:
            return ValidityPeriod(int(date), int(expires))
        except InvalidSignedUrl:
            raise SignedUrlRefused from None

    def signed_bytes(self, tenant_id: str) -> bytes:
        """Return the signed bytes, which do not depend on the order of the parameters."""
        pairs = sorted(pair for pair in self.pairs if pair[0] != SIGNATURE)
        return json.dumps([tenant_id, self.host, self.path, pairs]).encode()

    def with_parameters(self, more: Pairs) -> "SignedAddress":
        return SignedAddress(self.base, self.host, self.path, [*self.pairs, *more])

    def __str__(self) -> str:
        return f"{self.base}?{urlencode(self.pairs)}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
