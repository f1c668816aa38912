"""Manifests of repositories: replaced in their order by the agent's server, with packs that count for the tenant."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roost.agents.registry.repository import find_agent, set_agent_host
from roost.agents.workspace.git.manifests import RepositoryManifests
from roost.core.db import Database
from roost.drivers.git.manifest_contract import RepositoryManifest, RepositoryState, StoredPack
from roost.identity import tenants
from roost.storage.content.service import known_packs, stored_bytes
from tests.support.git_deployment import add_agents

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AGENT = "ada"


@pytest.fixture
def manifests(database: Database) -> RepositoryManifests:
    database.run(lambda connection: add_agents(connection, AGENT, "bob"))
    return RepositoryManifests(database, "first")


def manifest(generation: int, *keys: str) -> RepositoryManifest:
    packs = [StoredPack(f"pack-{key}", key * 32, {"pack": 5, "idx": 7}, "d" * 64) for key in keys]
    return RepositoryManifest(RepositoryState(generation, "a" * 40, "b" * 40), packs, NOW, NOW)


def count_bytes(database: Database) -> int:
    tenant = database.run(lambda connection: tenants.ensure_tenant(connection, "tenant"))
    return database.run(lambda connection: stored_bytes(connection, tenant.id))


async def test_each_generation_is_stored_once(manifests: RepositoryManifests) -> None:
    assert await manifests.load(AGENT) is None
    assert await manifests.read_state(AGENT) == RepositoryState()
    assert not await manifests.replace(AGENT, manifest(2, "1"))
    assert await manifests.replace(AGENT, manifest(1, "1"))
    assert not await manifests.replace(AGENT, manifest(1, "2"))
    changed = replace(manifest(2, "1", "2"), state=RepositoryState(2))
    assert await manifests.replace(AGENT, changed)
    assert not await manifests.replace(AGENT, manifest(2, "3"))
    assert await manifests.load(AGENT) == changed
    assert await manifests.read_state(AGENT) == changed.state
    assert await manifests.load("bob") is None


async def test_another_server_or_one_of_a_deleted_agent_stores_nothing(
    manifests: RepositoryManifests, database: Database
) -> None:
    assert await manifests.replace(AGENT, manifest(1, "1"))
    assert not await manifests.replace("none", manifest(1, "2"))
    await database.write(lambda connection: set_agent_host(connection, AGENT, "second", None))
    assert not await manifests.replace(AGENT, manifest(2, "1"))
    assert await RepositoryManifests(database, "second").replace(AGENT, manifest(2, "1"))
    assert await manifests.read_state(AGENT) == manifest(2).state


async def test_named_packs_count_for_the_tenant(manifests: RepositoryManifests, database: Database) -> None:
    for generation, keys in ((1, "12"), (2, "23"), (3, "3")):
        assert await manifests.replace(AGENT, manifest(generation, *keys))
        assert count_bytes(database) == 12 * len(keys)
    assert await manifests.replace("bob", manifest(1, "4"))
    await manifests.delete(AGENT)
    await manifests.delete(AGENT)
    assert await manifests.load(AGENT) is None
    assert count_bytes(database) == 12
    known = database.run(lambda connection: known_packs(connection, [key * 32 for key in "12345"]))
    assert known == {key * 32 for key in "1234"}, "those without a holder are left to the sweep"
    assert database.run(lambda connection: find_agent(connection, AGENT)) is not None
