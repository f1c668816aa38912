"""The scrub finds damage, reports its owners, and notices a repair."""

from datetime import timedelta

import pytest

from roost.core import clock
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.scrub import RECHECK_AFTER, ContentScrubber
from roost.storage.unixfs.profile import PROFILES, ImportProfile
from tests.storage.cars import EVERY_PROFILE, blocks_of, encode_car, take
from tests.storage.storage_env import CONTENT, StorageEnv


@pytest.fixture
def scrub(env: StorageEnv) -> ContentScrubber:
    return ContentScrubber(env.db, env.reader, rate=1 << 40)


async def scrub_all(scrub: ContentScrubber) -> int:
    """Check all packs that are due; return their number."""
    count = 0
    while await scrub.scrub_next():
        count += 1
    return count


def flip(env: StorageEnv, pack_id: str, at: int) -> None:
    with env.blob(pack_id).open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes((byte ^ 1,)))


def advance_clock(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    moment = clock.utc_now() + by
    monkeypatch.setattr(clock, "utc_now", lambda: moment)


@EVERY_PROFILE
async def test_each_pack_is_checked_once_in_a_while(
    env: StorageEnv, scrub: ContentScrubber, profile: ImportProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.keep(CONTENT, b"small", b"", profile=profile)
    tree, blocks = blocks_of(profile, b"in a CAR")
    await take(env, encode_car([tree.cid], blocks))
    assert await scrub_all(scrub) == 2
    assert scrub.damaged_packs == 0
    assert await scrub_all(scrub) == 0
    advance_clock(monkeypatch, RECHECK_AFTER + timedelta(seconds=1))
    assert await scrub_all(scrub) == 2


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("at", [0, 4_999_999, 5_000_003])
async def test_a_flipped_bit_is_found_and_told(
    env: StorageEnv, scrub: ContentScrubber, profile: ImportProfile, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    await env.keep(CONTENT[:9000], profile=profile, holder="file/whole")
    pack_id, _ = await env.keep(CONTENT, b"small", profile=profile, holder="file/broken")
    flip(env, pack_id, at)
    await scrub_all(scrub)
    assert scrub.damaged_packs == 1
    said = capsys.readouterr()
    assert pack_id in said.out + said.err
    assert "file/broken" in said.out + said.err
    assert "file/whole" not in said.out + said.err


async def test_a_lost_object_is_found(env: StorageEnv, scrub: ContentScrubber) -> None:
    pack_id, _ = await env.keep(CONTENT)
    env.blob(pack_id).unlink()
    await scrub_all(scrub)
    assert scrub.damaged_packs == 1


async def test_what_was_brought_back_is_whole_again(
    env: StorageEnv, scrub: ContentScrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_id, (tree,) = await env.keep(CONTENT)
    flip(env, pack_id, 77)
    await scrub_all(scrub)
    stat = await env.reader.stat(env.scope, tree.cid)
    with pytest.raises(ContentDamaged):
        _ = [piece async for piece in env.reader.stream_file(env.scope, stat)]
    flip(env, pack_id, 77)
    advance_clock(monkeypatch, RECHECK_AFTER + timedelta(seconds=1))
    await scrub_all(scrub)
    assert scrub.damaged_packs == 0
