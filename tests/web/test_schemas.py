"""The bases of all shapes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from roost.web.schemas import ApiSchema, DataEnvelope, Moment, StorageSchema, Text


class CamelCaseBody(ApiSchema):
    first_name: Text
    made_at: Moment | None = None


class SnakeCaseBody(StorageSchema):
    first_name: Text
    made_at: Moment | None = None


@pytest.mark.parametrize("name", ["firstName", "first_name"])
def test_the_agents_shapes_are_camel_case_outside(name: str) -> None:
    read = CamelCaseBody.model_validate({name: "x", "unknown": 1})
    assert read.model_dump(by_alias=True) == {"firstName": "x", "madeAt": None}


def test_the_storage_api_s_are_as_they_stand() -> None:
    assert SnakeCaseBody.model_validate({"first_name": "x", "unknown": 1}).model_dump() == {
        "first_name": "x",
        "made_at": None,
    }
    with pytest.raises(ValidationError):
        SnakeCaseBody.model_validate({"firstName": "x"})


@pytest.mark.parametrize("shape", [CamelCaseBody, SnakeCaseBody])
def test_nobody_changes_them(shape: type[CamelCaseBody] | type[SnakeCaseBody]) -> None:
    made = shape(first_name="x")
    with pytest.raises(ValidationError):
        made.first_name = "y"


@pytest.mark.parametrize("text", ["", "a", "\u00fc\u6f22\U0001f600", "\x01\x7f\u202e", "\ufffe", "\ue000"])
def test_texts_that_are_kept(text: str) -> None:
    assert SnakeCaseBody(first_name=text).first_name == text


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a\udc00b"])
def test_texts_that_no_database_keeps(text: str) -> None:
    with pytest.raises(ValidationError, match="must not contain NUL or lone surrogates"):
        SnakeCaseBody(first_name=text)


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (datetime(2026, 11, 21, tzinfo=UTC), "2026-11-21T00:00:00.000000Z"),
        (datetime(2026, 11, 21, 10, 29, 47, 355, tzinfo=UTC), "2026-11-21T10:29:47.000355Z"),
        (datetime(2026, 11, 21, 1, tzinfo=timezone(timedelta(hours=2))), "2026-11-20T23:00:00.000000Z"),
    ],
)
def test_times_are_in_utc_with_microseconds(moment: datetime, told: str) -> None:
    assert SnakeCaseBody(first_name="x", made_at=moment).model_dump(mode="json")["made_at"] == told
    assert SnakeCaseBody(first_name="x", made_at=moment).model_dump()["made_at"] == moment


def test_envelope_has_the_field_data() -> None:
    assert DataEnvelope[SnakeCaseBody | None](data=None).model_dump() == {"data": None}
    assert DataEnvelope(data=SnakeCaseBody(first_name="x")).model_dump(mode="json") == {
        "data": {"first_name": "x", "made_at": None}
    }
