"""Payloads of notifications are bounded, and one that this version does not know means that anything changed."""

import pytest

from roost.core.db import ANY_TOPIC, Database
from roost.core.db.notifications import CHANNEL, notify_servers, parse_payload
from tests.support.databases import listen_to


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ({"a", "events/ä\n"}, {"a", "events/ä\n"}),
        (set[str](), set[str]()),
        ({f"events/{number:036}" for number in range(150)}, {f"events/{number:036}" for number in range(150)}),
        ({f"events/{number:036}" for number in range(400)}, {ANY_TOPIC}),
        ({"x" * 9000}, {ANY_TOPIC}),
        ({"ä" * 2000}, {ANY_TOPIC}),
    ],
)
@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_topics_of_any_number_and_size_arrive(
    database: Database, database_url: str, topics: set[str], expected: set[str]
) -> None:
    with listen_to(database_url, CHANNEL) as receive:
        await database.write(lambda connection: notify_servers(connection, "me", topics))
        assert parse_payload(receive()) == ("me", frozenset(expected))


@pytest.mark.parametrize("payload", ["", "x", "[]", "{}", "null", "1", "[" * 5000])
def test_an_unknown_payload_means_any_topic(payload: str) -> None:
    assert parse_payload(payload) == ("", frozenset({ANY_TOPIC}))
