from dataclasses import dataclass

from roost.core.partial_update import given_fields


@dataclass(frozen=True)
class Update:
    name: str | None = None
    enabled: bool | None = None
    note: str | None = None


def test_fields_without_a_value_are_left_out() -> None:
    assert given_fields(Update()) == {}
    assert given_fields(Update(enabled=False, note="")) == {"enabled": False, "note": ""}
