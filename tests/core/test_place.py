from datetime import UTC, datetime

import pytest

from roost.core.place import InvalidPage, Place


def test_a_place_there_and_back() -> None:
    place = Place(datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC), "id")
    assert Place.parse(place.token()) == place


@pytest.mark.parametrize(
    "token", ["", "x", "é", "====", "YTpi", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6aQ==", "MTphAGI=", "\udc80"]
)
def test_what_is_no_place(token: str) -> None:
    with pytest.raises(InvalidPage):
        Place.parse(token)
