"""Rows of browser sessions."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.migrations.row_values import OTHER, TENANT, THEN, Row, digest


def _session(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "digest": digest(name),
        "tenant_id": TENANT,
        "key_id": "before",
        "role": "owner",
        "created_at": THEN,
        "seen_at": THEN,
        "expires_at": THEN,
    }
    return "browser_sessions", row | more


def _link(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {"digest": digest(name), "tenant_id": TENANT, "key_id": "before", "role": "owner"}
    return "session_links", row | {"expires_at": THEN} | more


ROWS: Mapping[str, Sequence[Row]] = {
    "0040": [
        _session("session"),
        _session("other session", tenant_id=OTHER, role="viewer"),
        _link("login"),
        _link("other login", tenant_id=OTHER, role="editor"),
    ],
}
