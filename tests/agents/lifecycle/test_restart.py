"""Restart: a new gateway, and only for another version a new container."""

import asyncio

import pytest

from roost.agents.lifecycle.errors import AgentRestartFailed
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import AgentState
from roost.agents.versions.errors import InvalidEngineVersion
from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.fake import BROKEN
from tests.agents.lifecycle.house import House


async def test_the_gateway_is_new_and_what_runs_beside_it_goes_on(home: House) -> None:
    agent = await home.create()
    container, gateway = await home.containers(), await home.gateway_pid(agent)
    await home.warden(agent.id).start("script", ["sleep", "1000"], env={})
    beside = (await home.warden(agent.id).processes())["script"].pid
    assert await home.services.restart(agent.id) == gateway
    assert await home.gateway_pid(agent) not in {gateway, None}
    assert await home.containers() == container
    assert (await home.warden(agent.id).processes())["script"].pid == beside


async def test_the_same_version_is_no_change(home: House) -> None:
    agent = await home.create()
    container = await home.containers()
    await home.services.restart(agent.id, "1.0.0")
    assert await home.containers() == container


async def test_another_version_is_a_new_box(home: House) -> None:
    agent = await home.create()
    container = await home.containers()
    home.engine.install("1.1.0", lambda *_: None)
    await home.services.restart(agent.id, "1.1.0")
    assert (await home.containers())[agent.id] != container[agent.id]
    assert (await home.roster.get(agent.id)).engine_version == "1.1.0"
    health = await home.engine.health(home.reach.port_dialer(agent.id), await home.roster.get_internal_token(agent.id))
    assert health.version == "1.1.0"


async def test_a_version_that_is_missing_is_installed_first(home: House) -> None:
    agent = await home.create()
    await home.services.restart(agent.id, "1.1.0")
    assert "1.1.0" in home.engine.installed()
    assert (await home.roster.get(agent.id)).engine_version == "1.1.0"


async def test_an_install_that_fails_changes_nothing(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise EngineInstallFailed("npm said https://user:password@registry is down")

    agent = await home.create()
    gateway = await home.gateway_pid(agent)
    monkeypatch.setattr(home.engine, "install", broken)
    with pytest.raises(AgentRestartFailed):
        await home.services.restart(agent.id, "1.1.0")
    kept = await home.roster.get(agent.id)
    assert (kept.state, kept.engine_version, kept.reason) == (AgentState.RUNNING, "1.0.0", None)
    assert await home.gateway_pid(agent) == gateway


async def test_a_version_that_does_not_start_is_told(home: House) -> None:
    agent = await home.create()
    with pytest.raises(AgentRestartFailed):
        await home.services.restart(agent.id, BROKEN)
    failed = await home.roster.get(agent.id)
    assert (failed.state, failed.engine_version) == (AgentState.FAILED, BROKEN)
    assert "exited with code 3" in (failed.reason or "")
    await home.services.restart(agent.id, "1.0.0")
    assert (await home.roster.get(agent.id)).state is AgentState.RUNNING


@pytest.mark.parametrize("version", ["1.2.0", "0", "../1.0.0", "1.0.0\n", "", "--help"])
async def test_only_what_exists_is_a_version(home: House, version: str) -> None:
    agent = await home.create()
    gateway = await home.gateway_pid(agent)
    with pytest.raises(InvalidEngineVersion):
        await home.services.restart(agent.id, version)
    assert await home.gateway_pid(agent) == gateway
    assert (await home.roster.get(agent.id)).engine_version == "1.0.0"


async def test_one_that_does_not_come_up_again(home: House) -> None:
    agent = await home.create()
    home.engine.remove("1.0.0")
    with pytest.raises(AgentRestartFailed):
        await home.services.restart(agent.id)
    assert (await home.roster.get(agent.id)).state is AgentState.FAILED
    home.engine.install("1.0.0", lambda *_: None)
    await home.services.restart(agent.id)
    assert (await home.roster.get(agent.id)).state is AgentState.RUNNING


async def test_a_lost_box_is_made_again(home: House) -> None:
    agent = await home.create()
    await home.runtime.stop(agent.id, grace=0)
    assert await home.services.restart(agent.id) is None
    assert await home.services.starter.is_up(agent)


async def test_several_at_once_end_with_one_gateway(home: House) -> None:
    agent = await home.create()
    await asyncio.gather(*(home.services.restart(agent.id) for _ in range(3)))
    assert (await home.roster.get(agent.id)).state is AgentState.RUNNING
    assert await home.services.starter.is_up(agent)


async def test_nobody_cannot_be_restarted(home: House) -> None:
    with pytest.raises(AgentNotFound):
        await home.services.restart("nobody")
