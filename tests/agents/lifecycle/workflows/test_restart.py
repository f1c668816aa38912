"""Restart: a new gateway, and a new container only for another version."""

import asyncio

import pytest

from roost.agents.lifecycle.versions.model import InvalidEngineVersion
from roost.agents.lifecycle.workflows.model import AgentRestartFailed
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import AgentState
from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.fake.driver import BROKEN
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv


async def test_a_restart_replaces_the_gateway_and_keeps_other_processes(env: LifecycleEnv) -> None:
    agent = await env.create()
    container, gateway = await env.containers(), await env.gateway_pid(agent)
    await env.warden(agent.id).start("script", ["sleep", "1000"], env={})
    script = (await env.warden(agent.id).processes())["script"].pid
    assert await env.services.restart(agent.id) == gateway
    assert await env.gateway_pid(agent) not in {gateway, None}
    assert await env.containers() == container
    assert (await env.warden(agent.id).processes())["script"].pid == script


async def test_the_same_version_keeps_the_container(env: LifecycleEnv) -> None:
    agent = await env.create()
    container = await env.containers()
    await env.services.restart(agent.id, "1.0.0")
    assert await env.containers() == container


async def test_another_version_gets_a_new_container(env: LifecycleEnv) -> None:
    agent = await env.create()
    container = await env.containers()
    env.engine.install("1.1.0", lambda *_: None)
    await env.services.restart(agent.id, "1.1.0")
    assert (await env.containers())[agent.id] != container[agent.id]
    assert (await env.agents.get(agent.id)).engine_version == "1.1.0"
    reported = await env.engine.health(
        env.runtimes.get_warden(agent.id).dial, await env.agents.get_internal_token(agent.id)
    )
    assert reported == "1.1.0"


async def test_a_version_that_is_missing_is_installed_first(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.services.restart(agent.id, "1.1.0")
    assert "1.1.0" in env.engine.installed()
    assert (await env.agents.get(agent.id)).engine_version == "1.1.0"


async def test_an_install_that_fails_changes_nothing(env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise EngineInstallFailed("npm said https://user:password@registry is down")

    agent = await env.create()
    gateway = await env.gateway_pid(agent)
    monkeypatch.setattr(env.engine, "install", broken)
    with pytest.raises(AgentRestartFailed):
        await env.services.restart(agent.id, "1.1.0")
    kept = await env.agents.get(agent.id)
    assert (kept.state, kept.engine_version, kept.reason) == (AgentState.RUNNING, "1.0.0", None)
    assert await env.gateway_pid(agent) == gateway


async def test_a_version_that_does_not_start_is_reported(env: LifecycleEnv) -> None:
    agent = await env.create()
    with pytest.raises(AgentRestartFailed):
        await env.services.restart(agent.id, BROKEN)
    failed = await env.agents.get(agent.id)
    assert (failed.state, failed.engine_version) == (AgentState.FAILED, BROKEN)
    assert "exited with code 3" in (failed.reason or "")
    await env.services.restart(agent.id, "1.0.0")
    assert (await env.agents.get(agent.id)).state is AgentState.RUNNING


@pytest.mark.parametrize("version", ["1.2.0", "0", "../1.0.0", "1.0.0\n", "", "--help"])
async def test_unknown_versions_are_rejected(env: LifecycleEnv, version: str) -> None:
    agent = await env.create()
    gateway = await env.gateway_pid(agent)
    with pytest.raises(InvalidEngineVersion):
        await env.services.restart(agent.id, version)
    assert await env.gateway_pid(agent) == gateway
    assert (await env.agents.get(agent.id)).engine_version == "1.0.0"


async def test_a_restart_that_fails_can_be_repeated(env: LifecycleEnv) -> None:
    agent = await env.create()
    env.engine.remove("1.0.0")
    with pytest.raises(AgentRestartFailed):
        await env.services.restart(agent.id)
    assert (await env.agents.get(agent.id)).state is AgentState.FAILED
    env.engine.install("1.0.0", lambda *_: None)
    await env.services.restart(agent.id)
    assert (await env.agents.get(agent.id)).state is AgentState.RUNNING


async def test_a_lost_container_is_created_again(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.runtime.stop(agent.id, grace=0)
    assert await env.services.restart(agent.id) is None
    assert await env.start.starter.is_up(agent)


async def test_concurrent_restarts_end_with_one_gateway(env: LifecycleEnv) -> None:
    agent = await env.create()
    await asyncio.gather(*(env.services.restart(agent.id) for _ in range(3)))
    assert (await env.agents.get(agent.id)).state is AgentState.RUNNING
    assert await env.start.starter.is_up(agent)


async def test_a_missing_agent_cannot_be_restarted(env: LifecycleEnv) -> None:
    with pytest.raises(AgentNotFound):
        await env.services.restart("nobody")
