"""Values that the rows of all services share: tenants, times, keys."""

import hashlib
from collections.abc import Mapping
from typing import Any

from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive

Row = tuple[str, Mapping[str, Any]]
"""Name of a table, and values of its columns at that time."""

THEN = 1_763_700_000_123_456
"""Microseconds since 1970: November 2025, like all times here except FAR."""
FAR = 4_102_444_800_000_000
SEALER = Sealer(Sensitive(bytes(range(32))))
TENANT, OTHER = "01-ada", "02-bob"
PAIR_SECRET = "the secret of a pair"


def sealed(value: bytes, place: str) -> bytes:
    return SEALER.seal(value, place)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def key(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "name": name,
        "scopes": "[]",
        "created_at": THEN,
        "expires_at": FAR,
        "revoked_at": None,
    }
    return "api_keys", row | more
