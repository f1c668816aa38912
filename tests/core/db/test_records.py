from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa

from roost.core.db import read_record, record_values

things = sa.Table(
    "things",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(9)),
    sa.Column("tags", sa.String(9)),
    sa.Column("internal", sa.String(9)),
)


@dataclass(frozen=True)
class Thing:
    id: int
    name: str
    tags: tuple[str, ...]
    uses: int = field(default=7)


def stored(values: dict[str, Any]) -> Any:
    with sa.create_engine("sqlite://").begin() as connection:
        things.create(connection)
        connection.execute(things.insert().values(values))
        return connection.execute(things.select()).one()


def test_a_record_comes_back_as_it_was_stored() -> None:
    thing = Thing(1, "a", ("x", "y"))
    row = stored(record_values(things, thing, tags=" ".join(thing.tags), internal="i"))
    assert row.internal == "i"
    assert read_record(Thing, row, tags=tuple(row.tags.split())) == thing


def test_attributes_that_are_no_columns_are_not_stored() -> None:
    assert record_values(things, Thing(1, "a", ()), tags="") == {"id": 1, "name": "a", "tags": ""}


def test_a_field_without_column_or_default_is_an_error() -> None:
    @dataclass
    class Other:
        missing: int

    with pytest.raises(TypeError, match="missing"):
        read_record(Other, stored({"id": 1}))
