"""Secrets on both databases: limits hold under concurrency, values open in their own row only (B1-B3, B7-B9, E3)."""

import asyncio
from collections.abc import Awaitable
from contextlib import closing

import pytest

from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import (
    ConflictingSecrets,
    DuplicateSecretName,
    InvalidSecret,
    ProviderKey,
    Secret,
    SecretAttached,
    SecretKind,
    SecretLimitReached,
    SecretNotFound,
    SecretsNotConfigured,
    UnreadableSecret,
)
from roost.agents.setup.secrets.provider_keys import ProviderKeys
from roost.agents.setup.secrets.sealed_secrets import SecretEnvironment
from roost.agents.setup.secrets.service import SecretService
from roost.core.db import ChangeListener, Database
from roost.core.problem import Problem
from roost.core.seal import Sealer, SealingKeyMissing, SealingKeys
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.drivers.model.local import until

KEY = Sensitive(bytes(32))


class SecretsEnv:
    """A tenant with secrets and agents."""

    def __init__(self, db: Database, sealer: Sealer | None = None) -> None:
        self.db, sealer = db, sealer or Sealer(KEY)
        self.agents = AgentRepository(db, sealer, dict.fromkeys(Plan, 20), "host")
        self.secrets, self.delivery = SecretService(db, sealer, self.agents), SecretEnvironment(db, sealer)
        self.keys = ProviderKeys(db, sealer)
        self.tenant = self.of("acme")

    def of(self, tenant: str) -> str:
        return self.db.run(lambda c: tenants.ensure_tenant(c, tenant, Plan.PAID).id)

    def agent(self, state: AgentState = AgentState.RUNNING) -> str:
        def add(connection) -> str:
            agent = self.agents.create(connection, self.tenant, AgentProfile("a"), "fake", "1")
            self.agents.set_state(connection, agent.id, state)
            return agent.id

        return self.db.run(add)

    async def add(
        self, name: str, value: str = "value", kind: SecretKind = SecretKind.SECRET, tenant: str | None = None
    ) -> Secret:
        return await self.secrets.create(tenant or self.tenant, name, value, kind)

    async def attach(self, agent: str, *secrets: Secret) -> int:
        return (await self.secrets.attach(self.tenant, agent, [secret.id for secret in secrets]))[0]

    async def names(self, agent: str) -> list[str]:
        return [one.secret.name for one in await self.secrets.list_attached(agent)]

    def delete_agent(self, agent: str) -> None:
        def go(connection) -> None:
            self.agents.mark_deleted(connection, agent)
            SecretService.detach_all(connection, agent)

        self.db.run(go)


@pytest.fixture
def env(database: Database) -> SecretsEnv:
    return SecretsEnv(database)


async def outcome(doing: Awaitable[object]) -> type | None:
    try:
        await doing
    except Problem as problem:
        return type(problem)
    return None


async def test_a_secret_is_listed_without_its_value_and_a_variable_with_it(env: SecretsEnv) -> None:
    await env.add("B_SECRET", "hush")
    variable = await env.add("A_VARIABLE", "shown", SecretKind.VARIABLE)
    agent = env.agent()
    await env.attach(agent, variable)
    (first, second), limit = await env.secrets.list(env.tenant)
    assert (first.secret, first.agents, first.value) == (variable, {agent: "a"}, Sensitive("shown"))
    assert (second.secret.name, second.agents, second.value) == ("B_SECRET", {}, None)
    assert limit == 100


async def test_of_many_with_one_name_one_is_made(env: SecretsEnv) -> None:
    outcomes = await asyncio.gather(*(outcome(env.add("SAME")) for _ in range(12)))
    assert outcomes.count(None) == 1
    assert outcomes.count(DuplicateSecretName) == 11
    await env.add("SAME", tenant=env.of("other"))


async def test_the_limit_holds_in_a_rush(env: SecretsEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "SECRET_LIMIT", dict.fromkeys(Plan, 5))
    outcomes = await asyncio.gather(*(outcome(env.add(f"N{number}")) for number in range(12)))
    assert outcomes.count(None) == 5
    assert outcomes.count(SecretLimitReached) == 7


async def test_an_update_is_a_new_version(env: SecretsEnv) -> None:
    secret, agent = await env.add("A", "one"), env.agent()
    await env.attach(agent, secret)
    newer = await env.secrets.update(env.tenant, secret.id, "two")
    assert (newer.version, newer.name, newer.created_at) == (2, "A", secret.created_at)
    assert newer.updated_at > secret.updated_at
    assert await env.delivery.get_values(agent) == {"A": Sensitive("two")}


async def test_another_tenants_secret_is_not_there(env: SecretsEnv) -> None:
    theirs, agent = await env.add("A", tenant=env.of("other")), env.agent()
    for doing in (
        env.secrets.update(env.tenant, theirs.id, "x"),
        env.secrets.delete(env.tenant, theirs.id),
        env.attach(agent, await env.add("MINE"), theirs),
        env.secrets.detach(agent, theirs.id),
    ):
        assert await outcome(doing) is SecretNotFound
    assert await env.names(agent) == []


async def test_attaching_twice_is_once(env: SecretsEnv) -> None:
    secret, agent = await env.add("A"), env.agent()
    assert await env.attach(agent, secret, secret) == 1
    assert await env.attach(agent, secret, await env.add("B")) == 1
    assert await env.names(agent) == ["A", "B"]
    await env.secrets.detach(agent, secret.id)
    assert await outcome(env.secrets.detach(agent, secret.id)) is SecretNotFound
    assert await env.names(agent) == ["B"]


async def test_two_credentials_of_a_provider_never_meet_on_an_agent(env: SecretsEnv) -> None:
    key, token = await env.add("OPENAI_API_KEY"), await env.add("OPENAI_OAUTH_TOKEN")
    agent, other = env.agent(), env.agent()
    assert await outcome(env.attach(agent, key, token)) is ConflictingSecrets
    assert await env.names(agent) == []
    outcomes = await asyncio.gather(*(outcome(env.attach(agent, one)) for one in (key, token) * 4))
    assert outcomes.count(ConflictingSecrets) == 4
    assert len(await env.names(agent)) == 1
    assert await env.attach(other, token if await env.names(agent) == ["OPENAI_API_KEY"] else key) == 1


async def test_an_environment_has_a_bound_also_when_a_value_grows(env: SecretsEnv) -> None:
    big = [await env.add(f"N{number}", "x" * 60_000) for number in range(2)]
    small, agent = await env.add("SMALL", "x"), env.agent()
    await env.attach(agent, *big, small)
    assert await outcome(env.secrets.update(env.tenant, small.id, "x" * 20_000)) is InvalidSecret
    assert (await env.delivery.get_values(agent))["SMALL"] == Sensitive("x")
    assert await outcome(env.attach(agent, await env.add("MORE", "x" * 20_000))) is InvalidSecret


async def test_deleting_and_attaching_at_once_end_consistently(env: SecretsEnv) -> None:
    for number in range(8):
        secret, agent = await env.add(f"N{number}"), env.agent()
        deleted, attached = await asyncio.gather(
            outcome(env.secrets.delete(env.tenant, secret.id)), outcome(env.attach(agent, secret))
        )
        assert (deleted, attached) in {(None, SecretNotFound), (SecretAttached, None)}
        assert bool(await env.names(agent)) is (attached is None)


async def test_an_agent_that_goes_lets_go_at_once(env: SecretsEnv) -> None:
    secret, agent = await env.add("A"), env.agent()
    await env.attach(agent, secret)
    assert await outcome(env.secrets.delete(env.tenant, secret.id)) is SecretAttached
    env.delete_agent(agent)  # it is purged later
    assert await outcome(env.attach(agent, secret)) is AgentNotFound
    await env.secrets.delete(env.tenant, secret.id)


async def test_nothing_stays_on_an_agent_that_is_deleted_meanwhile(env: SecretsEnv) -> None:
    for number in range(8):
        secret, agent = await env.add(f"N{number}"), env.agent()
        await asyncio.gather(outcome(env.attach(agent, secret)), asyncio.to_thread(env.delete_agent, agent))
        await env.secrets.delete(env.tenant, secret.id)


async def test_synced_is_what_a_running_gateway_has(env: SecretsEnv) -> None:
    secret, key = await env.add("A"), await env.add("OPENAI_API_KEY")
    agent, failed = env.agent(), env.agent(AgentState.FAILED)
    for one in (agent, failed):
        await env.attach(one, secret, key)

    async def synced(agent: str) -> dict[str, bool]:
        return {one.secret.name: one.synced for one in await env.secrets.list_attached(agent)}

    assert await synced(agent) == {"A": False, "OPENAI_API_KEY": True}
    for one in (agent, failed):
        await env.delivery.mark_synced(one, await env.delivery.get_environment(one))
    assert await synced(agent) == {"A": True, "OPENAI_API_KEY": True}
    assert await synced(failed) == {"A": False, "OPENAI_API_KEY": True}
    before = await env.delivery.get_environment(agent)
    await env.secrets.update(env.tenant, secret.id, "newer")
    await env.delivery.mark_synced(agent, before)  # a start that began before the update
    assert await synced(agent) == {"A": False, "OPENAI_API_KEY": True}


async def test_keys_of_model_providers_go_to_the_host_and_nowhere_else(env: SecretsEnv) -> None:
    agent = env.agent()
    given = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://x.example/v1", "GH_TOKEN": "g"}
    await env.attach(agent, *[await env.add(name, value) for name, value in given.items()])
    assert await env.keys.list(agent) == [
        ProviderKey("openai", "OPENAI_API_KEY", Sensitive("k"), "https://x.example/v1")
    ]
    assert await env.delivery.get_values(agent) == {"GH_TOKEN": Sensitive("g")}
    assert await env.keys.list(env.agent()) == []


async def test_logs_hide_secrets_and_not_variables(env: SecretsEnv) -> None:
    agent = env.agent()
    await env.attach(
        agent, await env.add("A", "hush"), await env.add("B", "shown", SecretKind.VARIABLE), await env.add("C")
    )
    assert set((await env.delivery.get_private_values(agent)).values()) == {Sensitive("hush"), Sensitive("value")}


async def test_listeners_are_notified_of_every_change(env: SecretsEnv) -> None:
    heard: list[str | None] = []
    env.secrets.subscribe(heard.append)
    secret, one, two = await env.add("A"), env.agent(), env.agent()
    await env.attach(one, secret)
    await env.attach(two, secret)
    assert heard == [one, two]
    await env.secrets.update(env.tenant, secret.id, "x")
    assert {*heard[2:]} == {one, two}
    await env.secrets.detach(two, secret.id)
    assert heard[4:] == [two]


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_listeners_are_notified_of_a_change_by_another_server(env: SecretsEnv, database_url: str) -> None:
    agent, secret = env.agent(), await env.add("A")
    with closing(Database(database_url)) as other:
        heard: list[str | None] = []
        SecretsEnv(other).secrets.subscribe(heard.append)
        listener = ChangeListener(other)
        listener.start()
        await until(lambda: heard == [None], 60)  # it listens; what was before is not known
        await env.attach(agent, secret)
        await until(lambda: heard == [None, agent], 60)
        await env.secrets.update(env.tenant, secret.id, "new")
        await until(lambda: heard == [None, agent, agent], 60)
        await listener.stop()


async def test_swapped_envelopes_do_not_open(env: SecretsEnv) -> None:
    secrets = [await env.add(f"N{number}", f"v{number}", SecretKind.VARIABLE) for number in range(2)]
    agent = env.agent()
    await env.attach(agent, *secrets)

    def swap(connection) -> None:
        rows = store.list_tenant_secrets(connection, env.tenant)
        for row, other in zip(rows, reversed(rows), strict=True):
            store.set_value(connection, row.secret, other.sealed)

    env.db.run(swap)
    with pytest.raises(UnreadableSecret, match="N0"):
        await env.delivery.get_environment(agent)
    listed, _ = await env.secrets.list(env.tenant)
    assert [one.value for one in listed] == [None, None]
    assert await env.delivery.get_private_values(agent) == {}
    for secret in secrets:
        await env.secrets.update(env.tenant, secret.id, "mended")
    assert await env.delivery.get_values(agent) == dict.fromkeys(("N0", "N1"), Sensitive("mended"))


async def test_an_older_version_put_back_does_not_open(env: SecretsEnv) -> None:
    secret, agent = await env.add("A", "old"), env.agent()
    await env.attach(agent, secret)
    (row,) = env.db.run(lambda c: store.list_tenant_secrets(c, env.tenant))
    newer = await env.secrets.update(env.tenant, secret.id, "new")
    env.db.run(lambda c: store.set_value(c, newer, row.sealed))
    assert await outcome(env.delivery.get_environment(agent)) is UnreadableSecret


async def test_without_a_key_nothing_is_kept(database: Database) -> None:
    keys = [SealingKeys((KEY,))]

    def source() -> SealingKeys:
        if not keys:
            raise SealingKeyMissing
        return keys[0]

    env = SecretsEnv(database, Sealer(source=source))
    secret = await env.add("A", "kept")
    keys.clear()
    assert await outcome(env.add("B")) is SecretsNotConfigured
    assert await outcome(env.secrets.update(env.tenant, secret.id, "x")) is SecretsNotConfigured
    agent_sees = env.db.run(lambda c: store.list_tenant_secrets(c, env.tenant))
    assert [row.secret for row in agent_sees] == [secret]
