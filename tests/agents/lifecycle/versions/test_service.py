"""Versions of engines, with a registry that answers, fails, or is slow."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from roost.agents.lifecycle.versions import model
from roost.agents.lifecycle.versions.model import (
    InvalidEngineVersion,
    TooManyEngineVersions,
    VersionInstallFailed,
)
from roost.agents.lifecycle.versions.service import VersionService
from roost.drivers.engine.contract import EngineInstallFailed, Progress
from roost.drivers.engine.fake.driver import BROKEN, FakeEngine
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv


class CountingEngine(FakeEngine):
    """Engine that counts its calls; its registry may be down, its installer slow or broken."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.installs = 0
        self.away = self.broken = False
        self.go_on = threading.Event()
        self.go_on.set()
        self.offered: Sequence[str] = super().available()

    def available(self) -> Sequence[str]:
        self.asked += 1
        if self.away:
            raise EngineInstallFailed("no registry")
        return self.offered

    def install(self, version: str, progress: Progress) -> None:
        self.installs += 1
        self.go_on.wait(10)
        if self.broken:
            raise EngineInstallFailed("no space")
        super().install(version, progress)


@pytest.fixture
def engine() -> CountingEngine:
    return CountingEngine()


@pytest.fixture
def versions(env: LifecycleEnv) -> VersionService:
    return env.start.versions


async def test_versions_for_a_restart_are_listed(env: LifecycleEnv, versions: VersionService) -> None:
    agent = await env.create()
    choices = await versions.list_for_agent(agent.id)
    assert (choices.engine, choices.current_version) == ("fake", "1.0.0")
    assert list(choices.available_versions) == ["1.1.0", BROKEN, "1.0.0"]
    assert choices.available_versions_per_engine == {"fake": choices.available_versions}
    assert await versions.check_update(agent.id) == ("1.0.0", "1.1.0")
    assert await versions.list_for_new_agents() == choices


async def test_the_registry_is_asked_once_in_a_while(versions: VersionService, engine: CountingEngine) -> None:
    await asyncio.gather(*(versions.find_latest(engine, "1.0.0") for _ in range(20)))
    await versions.find_latest(engine, "1.0.0")
    assert engine.asked == 1


async def test_without_a_registry_there_is_what_is_installed(versions: VersionService, engine: CountingEngine) -> None:
    engine.away = True
    assert await versions.find_latest(engine, "1.0.0") == "1.0.0"
    await versions.require(engine, "1.0.0")
    with pytest.raises(InvalidEngineVersion) as refusal:
        await versions.require(engine, "1.1.0")
    assert "registry does not respond" in (refusal.value.detail or "")
    with pytest.raises(InvalidEngineVersion):
        await versions.require(engine, "no version")


async def test_pre_releases_are_no_update(versions: VersionService, engine: CountingEngine) -> None:
    engine.offered = ("2.0.0-beta.1", "1.1.0")
    assert await versions.find_latest(engine, "1.0.0") == "1.1.0"
    assert await versions.find_latest(engine, "1.2.0") == "1.2.0"


async def test_more_versions_than_the_machine_should_hold(versions: VersionService, engine: CountingEngine) -> None:
    engine.offered = tuple(f"1.0.{number}" for number in range(20))
    engine._installed |= {f"1.0.{number}" for number in range(model.VERSIONS_LIMIT)}
    await versions.require(engine, "1.0.3")
    with pytest.raises(TooManyEngineVersions):
        await versions.require(engine, "1.0.19")


async def test_versions_on_their_way_count(versions: VersionService, engine: CountingEngine) -> None:
    engine._installed |= {f"1.0.{number}" for number in range(model.VERSIONS_LIMIT - 1)}
    engine.go_on.clear()
    for version in ("1.1.0", BROKEN):
        await versions.require(engine, version)
    first, second = (asyncio.create_task(versions.install(engine, version)) for version in ("1.1.0", BROKEN))
    with pytest.raises(VersionInstallFailed, match="Too many versions"):
        await second
    with pytest.raises(TooManyEngineVersions):
        await versions.require(engine, BROKEN)
    engine.go_on.set()
    await first
    assert len(engine.installed()) == model.VERSIONS_LIMIT


async def test_one_install_for_all_who_ask(versions: VersionService, engine: CountingEngine) -> None:
    engine.go_on.clear()
    asking = [asyncio.create_task(versions.install(engine, "1.1.0")) for _ in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()
    engine.go_on.set()
    await asyncio.gather(*asking[1:])
    assert (engine.installs, "1.1.0" in engine.installed()) == (1, True)


async def test_an_install_that_fails_can_be_tried_again(versions: VersionService, engine: CountingEngine) -> None:
    engine.broken = True
    with pytest.raises(VersionInstallFailed) as raised:
        await versions.install(engine, "1.1.0")
    assert "no space" not in raised.value.message
    engine.broken = False
    await versions.install(engine, "1.1.0")
    assert "1.1.0" in engine.installed()
