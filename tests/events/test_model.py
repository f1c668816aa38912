"""Types, cursors, filters, and what the scopes of a caller let it see."""

from datetime import UTC, datetime

import pytest

from roost.events.model import (
    MAX_DATA_CHARS,
    OLDEST,
    STORED_TYPES,
    Event,
    EventBounds,
    EventFilter,
    EventType,
    InvalidCursor,
    UnknownEventType,
    list_visible_types,
    parse_cursor,
    parse_types,
    shorten_data,
)
from roost.identity.caller import Caller, CallerKind

FILES = {EventType.FILE_ADDED, EventType.FILE_UPDATED, EventType.FILE_DELETED}


def test_types_and_kinds_are_named() -> None:
    assert parse_types(None) == STORED_TYPES
    assert parse_types("file, agent.deleted") == {*FILES, EventType.AGENT_DELETED}


@pytest.mark.parametrize("text", ["", "files", "agent,", "reset", "heartbeat", "agent.", "AGENT"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(UnknownEventType, match="types must name"):
        parse_types(text)


@pytest.mark.parametrize("text", ["-1", "1.5", "a", "9" * 19, "\u0661", " 1"])
def test_a_cursor_is_a_number(text: str) -> None:
    assert parse_cursor("oldest") == OLDEST
    assert (parse_cursor(None), parse_cursor(""), parse_cursor("0"), parse_cursor("9" * 18)) == (
        None,
        None,
        0,
        10**18 - 1,
    )
    with pytest.raises(InvalidCursor, match="after must be"):
        parse_cursor(text)


@pytest.mark.parametrize(
    ("scopes", "visible"),
    [
        ([], STORED_TYPES),
        (["org:read"], STORED_TYPES),
        (["org:files:read"], FILES),
        (["org:files:write"], FILES),
        (["org:agents:read"], STORED_TYPES - FILES),
        (["org:agents:read", "org:files:read"], STORED_TYPES),
        (["org:groups:read"], set()),
    ],
)
def test_scopes_limit_the_types(scopes: list[str], visible: set[EventType]) -> None:
    assert list_visible_types(Caller(CallerKind.SERVICE, "t", scopes=frozenset(scopes))) == visible


@pytest.mark.parametrize(("after", "allowed"), [(3, False), (4, True), (9, True), (10, False)])
def test_bounds_tell_whether_all_later_events_are_kept(after: int, *, allowed: bool) -> None:
    assert EventBounds(first=5, last=9).allow(after) is allowed
    assert EventBounds().allow(0)


def test_a_filter_by_agent_leaves_out_what_belongs_to_none() -> None:
    event = Event("t", 1, EventType.FILE_ADDED, datetime.now(UTC))
    assert EventFilter().matches(event)
    assert not EventFilter(agent_id="a").matches(event)
    assert not EventFilter(types=frozenset({EventType.AGENT_CHANGED})).matches(event)


def test_data_is_short_and_without_nulls() -> None:
    assert shorten_data({"a": None, "b": "x" * 1000, "c": 5, "d": False}) == {
        "b": "x" * MAX_DATA_CHARS,
        "c": 5,
        "d": False,
    }
