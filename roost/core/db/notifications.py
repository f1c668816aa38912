"""Payloads of the notifications by which PostgreSQL tells all servers of a commit (decision 0063)."""

import json
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy import Connection

CHANNEL = "roost_changes"
ANY_TOPIC = "*"
"""Topic of subscribers that may have missed topics: anything may have changed."""
_MAX_BYTES = 7999  # of PostgreSQL


def notify_servers(connection: Connection, sender: str, topics: Iterable[str]) -> None:
    """Tell all servers of topics when the transaction commits; `sender` is the process that knows them already."""
    payload = json.dumps([sender, *sorted(topics)])  # which is ASCII
    if len(payload) > _MAX_BYTES:
        payload = json.dumps([sender, ANY_TOPIC])
    connection.execute(sa.select(sa.func.pg_notify(CHANNEL, payload)))


def parse_payload(payload: str) -> tuple[str, frozenset[str]]:
    """Return the sender and the topics; of a payload that is none, no sender and ANY_TOPIC."""
    try:
        sender, *topics = json.loads(payload)
        return str(sender), frozenset(map(str, topics))
    except (ValueError, TypeError, RecursionError):
        return "", frozenset({ANY_TOPIC})
