import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.page_cursor import InvalidPageToken, PageCursor, split_page

NOW = datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    id: str
    created_at: datetime


def rows(count: int) -> Sequence[Row]:
    return [Row(str(number), NOW + timedelta(seconds=number)) for number in range(count)]


def test_a_place_there_and_back() -> None:
    place = PageCursor(NOW, "id")
    assert PageCursor.parse(place.token()) == place


@given(st.datetimes(), st.uuids())
def test_no_microsecond_is_lost(moment: datetime, row_id: object) -> None:
    place = PageCursor(moment.replace(tzinfo=UTC), str(row_id))
    assert PageCursor.parse(place.token()) == place


@pytest.mark.parametrize(
    "token", ["", "x", "é", "====", "YTpi", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6aQ==", "MTphAGI=", "\udc80"]
)
def test_malformed_page_tokens_are_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        PageCursor.parse(token)


@pytest.mark.parametrize("text", ["nan:x", "inf:x", "1e400:x", f"{'9' * 5000}:x", f"-{10**20}:x", ":", "1.5:x"])
def test_a_token_that_somebody_made_up(text: str) -> None:
    with pytest.raises(InvalidPageToken):
        PageCursor.parse(base64.urlsafe_b64encode(text.encode()).decode())


@given(st.text(max_size=200))
def test_any_text_is_a_place_or_refused(token: str) -> None:
    try:
        found = PageCursor.parse(token)
    except InvalidPageToken:
        return
    assert found.created_at.tzinfo is UTC
    assert len(found.id) <= 36
    assert "\0" not in found.id


@pytest.mark.parametrize(("there", "shown"), [(0, 0), (1, 1), (2, 2)])
def test_the_last_page_has_no_token(there: int, shown: int) -> None:
    found, token = split_page(rows(there), 2)
    assert (len(found), token) == (shown, None)


def test_a_page_that_is_not_the_last_ends_at_its_last_row() -> None:
    found, token = split_page(rows(3), 2)
    assert [row.id for row in found] == ["0", "1"]
    assert token is not None
    assert PageCursor.parse(token) == PageCursor(found[-1].created_at, "1")
