"""What nobody holds goes, a day later; what somebody holds stays."""

from datetime import timedelta

import pytest

from roost.core import clock
from roost.core.db import Connection
from roost.storage.content import service, store
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import Pack
from tests.storage.house import CONTENT, House


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    later = clock.utc_now() + timedelta(days=1, minutes=1)
    monkeypatch.setattr(clock, "utc_now", lambda: later)


async def test_what_was_let_go_goes_with_a_sweep(place: House, request: pytest.FixtureRequest) -> None:
    gone, (tree,) = await place.keep(CONTENT)
    kept, _ = await place.keep(b"kept", holder="file/2")
    await place.db.write(lambda connection: service.release_packs(connection, "file/1"))
    with pytest.raises(ContentNotFound):
        await place.reader.stat(place.scope, tree.cid)
    assert await place.content.sweep() == 0
    assert place.blob(gone).exists()
    request.getfixturevalue("tomorrow")
    assert await place.content.sweep() == 1
    assert not place.blob(gone).exists()
    assert place.blob(kept).exists()


async def test_what_goes_while_it_is_read_is_gone_and_not_damaged(place: House, request: pytest.FixtureRequest) -> None:
    _, (tree,) = await place.keep(b"one block")
    found = await place.reader.stat(place.scope, tree.cid)
    await place.db.write(lambda connection: service.release_packs(connection, "file/1"))
    request.getfixturevalue("tomorrow")
    assert await place.content.sweep() == 1
    with pytest.raises(ContentNotFound):
        await anext(place.reader.stream_file(place.scope, found))


@pytest.mark.usefixtures("tomorrow")
async def test_one_sweep_removes_all_that_nobody_holds(place: House) -> None:
    packs = [Pack(f"{number:032x}", 1, clock.utc_now() - timedelta(days=2)) for number in range(101)]

    def fill(connection: Connection) -> None:
        for pack in packs:
            store.add_pack(connection, pack, (), ())

    await place.db.write(fill)
    assert await place.content.sweep() == len(packs)


@pytest.mark.usefixtures("tomorrow")
async def test_objects_that_are_in_no_index_go(place: House) -> None:
    orphan = place.blob("ab" * 16)
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"left by a crash")
    assert await place.content.sweep() == 1
    assert not orphan.exists()
