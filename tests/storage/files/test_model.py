from datetime import UTC, datetime

import pytest

from roost.storage.files.errors import InvalidMetadata, InvalidPage
from roost.storage.files.model import Place, checked_keyvalues


def test_a_place_there_and_back() -> None:
    place = Place(datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC), "id")
    assert Place.parse(place.token()) == place


@pytest.mark.parametrize("token", ["", "x", "é", "====", "YTpi", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6aQ=="])
def test_what_is_no_place(token: str) -> None:
    with pytest.raises(InvalidPage):
        Place.parse(token)


def test_keyvalues() -> None:
    given = {"a": "1", "b": 2, "c": 2.5, "d": True}
    assert checked_keyvalues(given) == given


@pytest.mark.parametrize(
    "given",
    [
        {str(number): "x" for number in range(11)},
        {"": "x"},
        {"k" * 256: "x"},
        {"k": "v" * 1025},
        {"k": None},
        {"k": {}},
        {"k": float("nan")},
    ],
)
def test_keyvalues_that_are_none(given: dict[str, object]) -> None:
    with pytest.raises(InvalidMetadata):
        checked_keyvalues(given)
