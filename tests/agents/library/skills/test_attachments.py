"""Attachments on both databases: parallel requests at two servers (cases B5, F4)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from roost.agents.library.skills import store
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.library.skills.bundle import read_files
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.errors import ConflictingSkills, SkillAttached, SkillNotFound, TooManySkills
from roost.agents.library.skills.model import NewSkill, RegisteredSkill
from roost.core import clock
from roost.core.db import Database
from roost.core.problem import Problem
from tests.agents.library.skills.skills_env import SkillsEnv, make_bundle
from tests.agents.lifecycle.workflows.lifecycle_env import open_lifecycle_env


class AttachEnv:
    """An agent without a container, and the services of two servers."""

    def __init__(
        self, library: SkillsEnv, agent_id: str, services: tuple[AgentSkillService, AgentSkillService]
    ) -> None:
        self.library, self.agent_id, self.services = library, agent_id, services

    async def register(self, name: str, slug: str | None = None, text: str = "") -> RegisteredSkill:
        return await self.library.skills.register(self.library.tenant, make_bundle(name, text), NewSkill(slug=slug))

    def attach(self, at: int, *skills: RegisteredSkill) -> Awaitable[Any]:
        return self.services[at % 2].attach(self.library.tenant, self.agent_id, [one.version.cid for one in skills])

    async def attached(self) -> list[str]:
        rows = await self.library.db.read(lambda connection: store.list_attached(connection, self.agent_id))
        return sorted(one.version.cid for one in rows)


@pytest.fixture
async def env(database: Database, database_url: str, tmp_path: Path) -> AsyncIterator[AttachEnv]:
    library = SkillsEnv(database, tmp_path)
    second = Database(database_url)
    async with open_lifecycle_env(database, tmp_path) as one, open_lifecycle_env(second, tmp_path, host="two") as two:
        agent = await one.create_row()
        yield AttachEnv(library, agent.id, (one.services.workspace.skills, two.services.workspace.skills))
    second.close()


async def outcomes(*calls: Awaitable[Any]) -> list[type | None]:
    """Return the types of the problems, None for success."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, Problem) for one in found if isinstance(one, BaseException)), found
    return [type(one) if isinstance(one, Problem) else None for one in found]


async def test_one_skill_is_attached_once(env: AttachEnv) -> None:
    skill = await env.register("notes")
    assert await outcomes(*(env.attach(at, skill) for at in range(6))) == [None] * 6
    assert await env.attached() == [skill.version.cid]


async def test_the_eleventh_skill_is_refused(env: AttachEnv) -> None:
    skills = [await env.register(f"n{number}") for number in range(12)]
    found = await outcomes(*(env.attach(at, one) for at, one in enumerate(skills)))
    assert (found.count(None), found.count(TooManySkills)) == (10, 2)
    assert len(await env.attached()) == 10


async def test_one_of_two_skills_with_one_name(env: AttachEnv) -> None:
    twins = [await env.register("twin"), await env.register("twin", "@ada/twin", "other")]
    found = await outcomes(*(env.attach(at, one) for at, one in enumerate(twins)))
    assert sorted(map(str, found)) == sorted([str(None), str(ConflictingSkills)])
    assert len(await env.attached()) == 1


async def test_attached_while_it_is_deleted(env: AttachEnv) -> None:
    for number in range(4):
        skill = await env.register("brief", text=str(number))
        deletion = env.library.skills.delete(env.library.tenant, skill.version.cid)
        found = await outcomes(env.attach(number, skill), deletion)
        assert found in ([None, SkillAttached], [SkillNotFound, None])
        assert (await env.attached() == [skill.version.cid]) is (found[0] is None)
        if found[0] is None:
            await env.services[0].detach(env.agent_id, skill.skill.id)


async def test_updated_while_it_is_detached(env: AttachEnv) -> None:
    for number in range(4):
        old = await env.register("brief", text=f"{number} old")
        await env.attach(0, old)
        await env.register("brief", text=f"{number} new")
        one, two = env.services
        found = await outcomes(one.update(env.agent_id, old.skill.id), two.detach(env.agent_id, old.skill.id))
        assert found in ([None, None], [SkillNotFound, None])
        assert await env.attached() == []


@pytest.mark.parametrize(
    ("front", "age", "fault"),
    [
        (
            "name: 123\ndescription: x\n",
            0,
            "SKILL.md:2: engines read the name 123 as a number",
        ),  # of an earlier release
        ("name: notes\ndescription: x\nplatforms: [macos]\n", 0, "Hermes lists it under the condition platforms"),
        ("name: notes\ndescription: x\n", 0, None),
        ("name: notes\ndescription: x\n", 61, "its SKILL.md is well-formed"),
    ],
)
async def test_the_fault_of_a_skill_that_no_engine_lists(front: str, age: int, fault: str | None) -> None:
    bundle = read_files([("SKILL.md", f"---\n{front}---\nDo it.\n".encode())])
    library: Any = SimpleNamespace(read_version=AsyncMock(return_value=bundle))
    delivery = SkillDelivery(cast("Any", None), library)
    attached_at = clock.utc_now() - timedelta(seconds=age)
    attached: Any = SimpleNamespace(is_delivered=True, version=None, attached_at=attached_at)
    found = await delivery.find_fault(attached)
    assert found is None if fault is None else found and found.startswith(fault)
    attached.is_delivered = False
    assert await delivery.find_fault(attached) is None
