"""Model catalogs of agents' own keys: owner, refresh, and closed upstreams."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from roost.agents.models.gateway.catalog import MAX_PROVIDERS, AgentCatalogs, ModelCatalog, ModelListing
from roost.agents.models.gateway.errors import UnknownModel
from roost.agents.models.gateway.model import AgentProviders
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from tests.agents.models.gateway.model_env import ControlledUpstream
from tests.drivers.model.local import until


@dataclass
class AgentKeys:
    """What agents have by their ids, and the upstreams that were made for it."""

    has: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    made: list[tuple[str, ControlledUpstream]] = field(default_factory=list[tuple[str, ControlledUpstream]])
    reads: int = 0
    fails: Exception | None = None
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reading.set()

    async def settings(self, agent_id: str) -> Sequence[ModelSettings]:
        self.reads += 1
        if self.fails is not None:
            raise self.fails
        found = [ModelSettings(name, "openai", "http://x/v1") for name in self.has.get(agent_id, ())]
        await self.reading.wait()
        return found

    def connect(self, agent_id: str, settings: ModelSettings) -> ModelUpstream:
        upstream = ControlledUpstream(settings.name, ["m"])
        self.made.append((agent_id, upstream))
        return upstream


@pytest.fixture
def keys() -> AgentKeys:
    return AgentKeys({"a": ["mine"]})


@pytest.fixture
async def catalogs(keys: AgentKeys) -> AsyncIterator[AgentCatalogs]:
    deployment = ModelCatalog([ModelListing(ControlledUpstream("near", ["n"]))])
    made = AgentCatalogs(AgentProviders(keys.settings, keys.connect), deployment, max_agents=3)
    yield made
    await made.close()


async def ids(catalogs: AgentCatalogs, agent_id: str) -> Sequence[str]:
    async with catalogs.open_catalog(agent_id) as catalogue:
        return (await catalogue.get_offer()).ids


async def test_one_agents_providers_are_no_other_agents(catalogs: AgentCatalogs) -> None:
    assert await ids(catalogs, "a") == ["m", "mine/m", "near/n"]
    assert await ids(catalogs, "b") == ["n", "near/n"]
    async with catalogs.open_catalog("b") as catalogue:
        with pytest.raises(UnknownModel):
            await catalogue.find("mine/m")


async def test_it_is_read_and_connected_once(catalogs: AgentCatalogs, keys: AgentKeys) -> None:
    await asyncio.gather(*(ids(catalogs, "a") for _ in range(10)))
    await ids(catalogs, "b")
    await ids(catalogs, "b")
    assert (keys.reads, len(keys.made)) == (2, 1)


async def test_after_a_change_the_next_request_loads_the_catalog_and_old_connections_close(
    catalogs: AgentCatalogs, keys: AgentKeys
) -> None:
    await ids(catalogs, "a")
    keys.has["a"] = ["other"]
    catalogs.forget("a")
    assert await ids(catalogs, "a") == ["m", "other/m", "near/n"]
    await until(lambda: keys.made[0][1].closed)
    assert not keys.made[1][1].closed


async def test_a_request_that_runs_keeps_its_connection_until_it_is_over(
    catalogs: AgentCatalogs, keys: AgentKeys
) -> None:
    async with catalogs.open_catalog("a"):
        async with catalogs.open_catalog("a"):
            catalogs.forget("a")
        await ids(catalogs, "a")
        assert not keys.made[0][1].closed
    await until(lambda: keys.made[0][1].closed)


async def test_a_change_while_the_old_state_is_being_read_is_not_missed(
    catalogs: AgentCatalogs, keys: AgentKeys
) -> None:
    keys.reading.clear()
    early = asyncio.create_task(ids(catalogs, "a"))
    await until(lambda: keys.reads)
    keys.has["a"] = []
    catalogs.forget("a")
    keys.reading.set()
    await early
    assert await ids(catalogs, "a") == ["n", "near/n"]
    await until(lambda: keys.made[0][1].closed)


async def test_only_so_many_agents_are_kept(catalogs: AgentCatalogs, keys: AgentKeys) -> None:
    for agent_id in ("a", "b", "c", "d"):
        keys.has[agent_id] = ["mine"]
        await ids(catalogs, agent_id)
    await until(lambda: keys.made[0][1].closed)
    assert [upstream.closed for _, upstream in keys.made] == [1, 0, 0, 0]


async def test_only_so_many_providers_of_an_agent_count(catalogs: AgentCatalogs, keys: AgentKeys) -> None:
    keys.has["a"] = [f"p{number}" for number in range(MAX_PROVIDERS + 5)]
    await ids(catalogs, "a")
    assert len(keys.made) == MAX_PROVIDERS


async def test_at_the_end_all_is_closed_even_what_runs(catalogs: AgentCatalogs, keys: AgentKeys) -> None:
    keys.has["b"] = ["mine"]
    async with catalogs.open_catalog("a"), catalogs.open_catalog("b"):
        catalogs.forget("b")
        await catalogs.close()
        await catalogs.close()
    assert [upstream.closed for _, upstream in keys.made] == [1, 1]


async def test_unreadable_catalog_is_tried_again(catalogs: AgentCatalogs, keys: AgentKeys) -> None:
    keys.fails = OSError("no disk")
    with pytest.raises(OSError, match="no disk"):
        await ids(catalogs, "a")
    keys.fails = None
    assert (await ids(catalogs, "a"))[0] == "m"


async def test_one_that_may_be_outdated_is_read_again_and_kept_if_it_is_not(
    catalogs: AgentCatalogs, keys: AgentKeys
) -> None:
    await ids(catalogs, "a")
    catalogs.forget(None)
    assert await ids(catalogs, "a") == ["m", "mine/m", "near/n"]
    assert (keys.reads, len(keys.made)) == (2, 1)
    await ids(catalogs, "a")
    assert keys.reads == 2
    keys.has["a"] = ["new"]
    catalogs.forget(None)
    assert await ids(catalogs, "a") == ["m", "new/m", "near/n"]
    await until(lambda: keys.made[0][1].closed == 1)
    assert [upstream.name for _, upstream in keys.made] == ["mine", "new"]
