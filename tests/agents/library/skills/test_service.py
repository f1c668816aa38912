"""The library on both databases: parallel registrations, limits, and failures that leave nothing (B1-B3, B5)."""

import asyncio
from collections.abc import Awaitable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from roost.agents.library.skills import model
from roost.agents.library.skills.errors import InvalidSkill, SkillLimitReached, SkillNotFound, SkillVersionConflict
from roost.agents.library.skills.model import NewSkill, RegisteredSkill
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.blob.contract import BlobStoreFailed
from tests.agents.library.skills.skills_env import QuotaExceeded, SkillsEnv, make_bundle


@pytest.fixture
def env(database: Database, tmp_path: Path) -> SkillsEnv:
    return SkillsEnv(database, tmp_path)


@pytest.fixture
def other(database_url: str, database: Database, env: SkillsEnv, tmp_path: Path) -> Iterator[SkillsEnv]:
    """Return a second server of the same database and blobs."""
    db = Database(database_url)
    yield SkillsEnv(db, tmp_path)
    db.close()


async def outcomes(*calls: Awaitable[Any]) -> list[Any]:
    """Return results, and the types of problems."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, Problem) for one in found if isinstance(one, BaseException)), found
    return [type(one) if isinstance(one, Problem) else one for one in found]


async def test_two_servers_register_the_same_files_at_once(env: SkillsEnv, other: SkillsEnv) -> None:
    found = await outcomes(*(one.skills.register(env.tenant, make_bundle(), NewSkill()) for one in (env, other) * 3))
    assert sorted(one.is_new for one in found) == [False] * 5 + [True]
    assert len({one.version.id for one in found}) == 1
    assert len(await env.skills.list(env.tenant)) == 1
    assert len(await env.list_objects()) == 1


async def test_two_servers_register_other_files_under_one_number(env: SkillsEnv, other: SkillsEnv) -> None:
    calls = [
        one.skills.register(env.tenant, make_bundle(text=f"Text {number}"), NewSkill("2.0.0"))
        for number, one in enumerate((env, other) * 3)
    ]
    found = await outcomes(*calls)
    assert found.count(SkillVersionConflict) == 5
    assert len(await env.list_objects()) == 1
    numbers = await outcomes(
        *(
            one.skills.register(env.tenant, make_bundle(text=f"More {number}"), NewSkill())
            for number, one in enumerate((env, other) * 2)
        )
    )
    assert sorted(one.version.version for one in numbers) == ["2.0.1", "2.0.2", "2.0.3", "2.0.4"]


async def test_registered_while_it_is_deleted(env: SkillsEnv, other: SkillsEnv) -> None:
    for _ in range(5):
        registered = await env.skills.register(env.tenant, make_bundle(), NewSkill())
        again, _ = await outcomes(
            other.skills.register(env.tenant, make_bundle(), NewSkill()),
            env.skills.delete(env.tenant, registered.version.cid),
        )
        assert isinstance(again, RegisteredSkill)
        for one in await env.skills.list(env.tenant):
            assert (await env.skills.read_version(one.version)).files.keys() == {"SKILL.md"}
            await env.skills.delete(env.tenant, one.skill.id)
    await env.content.sweep(timedelta(0))
    assert await env.list_objects() == set()


async def test_failed_registrations_leave_nothing(env: SkillsEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = await env.skills.register(env.tenant, make_bundle(), NewSkill("1.0.0"))
    objects = await env.list_objects()
    large = make_bundle(text="large", file=bytes(range(256)) * 1000)
    monkeypatch.setattr(model, "VERSION_LIMIT", 1)
    assert await outcomes(env.skills.register(env.tenant, large, NewSkill())) == [SkillLimitReached]
    monkeypatch.setattr(model, "VERSION_LIMIT", 200)
    assert await outcomes(
        env.skills.register(env.tenant, large, NewSkill("1.0.0")),
        env.skills.register(env.tenant, large, NewSkill(), "unknown"),
        env.skills.register(env.tenant, make_bundle("No Name", file=bytes(300_000)), NewSkill()),
    ) == [SkillVersionConflict, SkillNotFound, InvalidSkill]
    env.quota.is_full = True
    assert await outcomes(env.skills.register(env.tenant, large, NewSkill())) == [QuotaExceeded]
    env.quota.is_full = False
    assert await env.list_objects() == objects
    assert [one.version.id for one in await env.skills.list(env.tenant)] == [kept.version.id]


async def test_a_disk_that_takes_nothing(env: SkillsEnv, tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("no folder")
    assert await outcomes(env.skills.register(env.tenant, make_bundle(file=bytes(500_000)), NewSkill())) == [
        BlobStoreFailed
    ]
    assert await env.skills.list(env.tenant) == []


async def test_of_two_tenants_each_has_its_own(env: SkillsEnv) -> None:
    theirs = env.find_tenant("theirs")
    own = await env.skills.register(env.tenant, make_bundle(), NewSkill(slug="@ada/notes"))
    foreign = await env.skills.register(theirs, make_bundle(), NewSkill(slug="@ada/notes"))
    assert own.version.cid == foreign.version.cid
    for reference in (own.skill.id, own.version.id):
        assert await outcomes(env.skills.list_versions(theirs, reference)) == [SkillNotFound]
        assert await outcomes(env.skills.delete(theirs, reference)) == [SkillNotFound]
    await env.skills.delete(theirs, "@ada/notes")
    assert (await env.skills.read_version(own.version)).files
