"""The contract of skills, over every engine, each in a container with a running gateway."""

import json
from collections.abc import AsyncIterator, Callable

import pytest

from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.engine.openclaw.rpc import OpenClawRpc
from tests.conformance.engines import CASES, TOKEN, EngineEnv, open_engine_env
from tests.conformance.test_tasks import until

SECONDS = 45.0
"""Deadline for a change; an engine without a notification may poll only every half a minute."""


class SkillEnv:
    """The ability with a running agent."""

    def __init__(self, env: EngineEnv) -> None:
        assert env.engine.skills is not None
        self.skills: SkillAbility = env.engine.skills
        self.env = env
        self.agent = AgentContext(env.warden, TOKEN, env.engine.default_version)

    async def write(self, name: str, content: bytes | None = None, folder: str | None = None) -> None:
        text = content or f"---\nname: {name}\ndescription: Does {name}.\n---\n\n# {name}\n\nDo it.\n".encode()
        path = f"skills/{folder or name}"
        await self.shell(f"mkdir -p {path}")
        await self.env.warden.write(f"{path}/SKILL.md", text)

    async def shell(self, command: str) -> None:
        done = await self.env.warden.exec(["sh", "-c", command])
        assert done.exit_code == 0, done.stderr

    async def refreshed(self, condition: Callable[[set[str]], bool]) -> None:
        """Refresh, and wait until the names that the engine lists are as wanted."""
        await self.skills.refresh(self.agent)

        async def is_met() -> bool:
            return condition(set(await self.skills.list(self.agent)))

        await until(is_met, SECONDS)


@pytest.fixture(scope="module", params=CASES)
async def engine_env(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EngineEnv]:
    """One gateway for all tests, because a start takes seconds."""
    async with open_engine_env(request.param, tmp_path_factory.mktemp("data")) as env:
        await env.start()
        yield env


@pytest.fixture
async def skills_env(engine_env: EngineEnv) -> AsyncIterator[SkillEnv]:
    skills_env = SkillEnv(engine_env)
    yield skills_env
    await skills_env.shell("rm -rf skills")


async def test_a_skill_is_listed_from_its_folder_until_that_goes(skills_env: SkillEnv) -> None:
    assert "orchid-care" not in await skills_env.skills.list(skills_env.agent)
    await skills_env.write("orchid-care")
    await skills_env.write("tide-table")
    await skills_env.refreshed(lambda names: {"orchid-care", "tide-table"} <= names)
    await skills_env.shell("rm -r skills/orchid-care")
    await skills_env.refreshed(lambda names: "orchid-care" not in names and "tide-table" in names)


async def test_folders_that_are_no_skills_hide_no_other(skills_env: SkillEnv) -> None:
    await skills_env.write("broken", b"\0\xff no front matter")
    await skills_env.write("deep", b"---\nname: &a [*a\n" + b"[" * 5000)
    await skills_env.shell(
        "mkdir -p skills/empty skills/nested/SKILL.md; echo x > skills/file; ln -s loop skills/loop;"
        " mkfifo skills/empty/pipe"
    )
    await skills_env.write("tide-table")
    await skills_env.refreshed(lambda names: "tide-table" in names)
    assert not {"broken", "empty", "nested", "file", "loop"} & set(await skills_env.skills.list(skills_env.agent))


async def test_why_a_listed_skill_is_not_used(skills_env: SkillEnv) -> None:
    """OpenClaw tells what a skill lacks; the other engines list only skills that they use."""
    requires = {
        "bins": ("the program `no-such-a`, the program `no\ufffdb` are missing", ["no-such-a", "no\u2028b"]),
        "anyBins": ("the alternative program `no-such-a` is missing", ["no-such-a"]),
        "env": ("the variable `NO_SUCH_KEY` is missing", ["NO_SUCH_KEY"]),
        "config": ("the setting `channels.slack.enabled` is missing", ["channels.slack.enabled"]),
        "os": ("the system `darwin` is missing", ["darwin"]),
    }
    for key, (_, names) in requires.items():
        wanted = {key: names} if key == "os" else {"requires": {key: names}}
        metadata = json.dumps({"openclaw": wanted})
        text = f"---\nname: {key.lower()}\ndescription: Needs it.\nmetadata: {metadata}\n---\nUse it.\n"
        await skills_env.write(key.lower(), text.encode())
    await skills_env.write("plain")
    await skills_env.refreshed(lambda names: "plain" in names)
    found = await skills_env.skills.list(skills_env.agent)
    assert found["plain"] is None
    if isinstance(skills_env.env.engine, OpenClaw):
        told = {key: found[key.lower()] for key in requires}
        assert told == {key: f"OpenClaw does not use it: {reason}" for key, (reason, _) in requires.items()}
        async with OpenClawRpc.open(skills_env.agent.warden.dial, TOKEN) as rpc:
            await rpc.call("skills.update", {"skillKey": "plain", "enabled": False})

        async def is_off() -> bool:
            fault = (await skills_env.skills.list(skills_env.agent))["plain"]
            return fault == "OpenClaw does not use it: its configuration turns it off"

        await until(is_off, SECONDS)
    else:
        assert set(found.values()) == {None}


async def test_another_token_is_refused(skills_env: SkillEnv) -> None:
    stranger = AgentContext(skills_env.env.warden, Sensitive("rst_gw_" + "f" * 32), skills_env.agent.version)
    with pytest.raises(EngineFailed):
        await skills_env.skills.list(stranger)


async def test_without_a_gateway_there_is_a_problem(skills_env: SkillEnv) -> None:
    """Runs last, because it stops the gateway."""
    await skills_env.env.warden.stop("gateway")
    with pytest.raises(Problem):
        await skills_env.skills.list(skills_env.agent)
