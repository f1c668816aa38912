"""Registration, proof and release of domains, on both databases."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roost.core.db import Database
from roost.domain_names.errors import (
    CustomDomainsForbidden,
    DomainLimitReached,
    DomainNotFound,
    DomainTaken,
    InvalidDomain,
    OwnershipNotProven,
)
from roost.domain_names.model import Domain, DomainOwner, DomainOwnerKind, DomainStatus
from roost.domain_names.service import DomainMirror, DomainService, PlatformNames
from roost.drivers.dns.contract import DnsUnavailable
from roost.drivers.dns.fake import FakeDns
from roost.identity import tenants
from roost.identity.caller import Plan

AT_ONCE = timedelta(seconds=-1)


class DomainNamesEnv:
    def __init__(self, db: Database, check: Callable[[str], Awaitable[str | None]] | None = None) -> None:
        self.db, self.dns = db, FakeDns()
        platform = PlatformNames("cloud.example", "agents.cloud.example", ("roost",))
        self.domains = DomainService(db, DomainMirror(db), self.dns, platform, check)

    def owner(self, tenant: str = "acme", owner_id: str = "a1", plan: Plan = Plan.PAID) -> DomainOwner:
        tenant_id = self.db.run(lambda connection: tenants.ensure_tenant(connection, tenant, plan)).id
        return DomainOwner(DomainOwnerKind.AGENT, owner_id, tenant_id)

    async def register(self, owner: DomainOwner, name: str = "app.example.com", port: int = 3000) -> Domain:
        return await self.domains.register_custom(owner, name, port, is_protected=True)

    async def prove(self, owner: DomainOwner, name: str = "app.example.com") -> None:
        challenge = await self.domains.get_challenge(owner.tenant_id, name)
        self.dns.texts.setdefault(challenge.record_name, []).append(challenge.record_value)


async def test_a_subdomain_is_active_at_once(database: Database) -> None:
    env = DomainNamesEnv(database)
    made = await env.domains.register_subdomain(env.owner(), "Ada", None, is_protected=True)
    assert (made.name, made.subdomain, made.status) == ("ada.agents.cloud.example", "ada", DomainStatus.ACTIVE)
    assert env.domains.mirror.get("ada.agents.cloud.example") == made
    assert await env.domains.verify(made.owner, made.id) == made
    with pytest.raises(DomainTaken):
        await env.domains.register_subdomain(env.owner("other", "b1"), "ada", None, is_protected=True)
    with pytest.raises(InvalidDomain, match="agent's id"):
        await env.domains.register_subdomain(env.owner(), "abcdefghijkmnpqr", None, is_protected=True)
    with pytest.raises(InvalidDomain, match="must be protected"):
        await env.domains.register_subdomain(env.owner(), "ada-open", None, is_protected=False)


async def test_a_custom_domain_is_proven_first(database: Database) -> None:
    answers: list[str | None] = ["The certificate is not there yet", None]

    async def check(_name: str) -> str | None:
        return answers.pop(0)

    env = DomainNamesEnv(database, check)
    owner = env.owner()
    made = await env.register(owner)
    challenge = await env.domains.get_challenge(owner.tenant_id, "App.Example.com.")
    assert challenge.record_name == "_roost-verify.app.example.com"
    assert made.status is DomainStatus.PENDING_OWNERSHIP
    assert challenge.record_value in (made.reason or "")
    assert env.domains.mirror.get(made.name) is None
    with pytest.raises(OwnershipNotProven, match="_roost-verify"):
        await env.domains.verify(owner, made.id)
    env.dns.is_available = False
    with pytest.raises(DnsUnavailable):
        await env.domains.verify(owner, made.id)
    env.dns.is_available = True
    await env.prove(owner)
    pending = await env.domains.verify(owner, made.id)
    assert (pending.status, pending.reason) == (DomainStatus.PENDING, "The certificate is not there yet")
    active = await env.domains.verify(owner, made.id)
    assert (active.status, active.reason) == (DomainStatus.ACTIVE, None)
    assert env.domains.mirror.get(made.name) == active


async def test_the_proof_of_another_tenant_counts_for_nothing(database: Database) -> None:
    env = DomainNamesEnv(database)
    owner, thief = env.owner(), env.owner("thief", "b1")
    mine, theirs = await env.register(owner), await env.register(thief)
    await env.prove(owner)
    with pytest.raises(OwnershipNotProven):
        await env.domains.verify(thief, theirs.id)
    with pytest.raises(DomainNotFound):
        await env.domains.verify(thief, mine.id)
    await env.domains.verify(owner, mine.id)
    await env.prove(thief)
    with pytest.raises(DomainTaken):
        await env.domains.verify(thief, theirs.id)
    with pytest.raises(DomainTaken):
        await env.register(env.owner("late", "c1"))


async def test_of_two_that_verify_at_once_one_has_the_name(database: Database) -> None:
    env = DomainNamesEnv(database)
    owners = [env.owner(f"t{number}", f"a{number}") for number in range(4)]
    made = [await env.register(owner) for owner in owners]
    for owner in owners:
        await env.prove(owner)
    ends = await asyncio.gather(*(env.domains.verify(one.owner, one.id) for one in made), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Domain", *["DomainTaken"] * 3]
    holder = env.domains.mirror.get("app.example.com")
    assert holder in ends


async def test_a_domain_without_its_record_is_switched_off(database: Database) -> None:
    env = DomainNamesEnv(database)
    owner = env.owner()
    made = await env.register(owner)
    await env.prove(owner)
    await env.domains.verify(owner, made.id)
    assert await env.domains.check_ownership(timedelta(hours=1)) == 0  # not due
    records = env.dns.texts.pop("_roost-verify.app.example.com")
    assert [await env.domains.check_ownership(AT_ONCE) for _ in range(2)] == [0, 0]
    env.dns.is_available = False
    assert await env.domains.check_ownership(AT_ONCE) == 0  # says nothing about the domain
    env.dns.is_available = True
    assert env.domains.mirror.get(made.name) is not None
    assert await env.domains.check_ownership(AT_ONCE) == 1
    assert env.domains.mirror.get(made.name) is None
    released = (await env.domains.list(owner))[0]
    assert released.status is DomainStatus.PENDING_OWNERSHIP
    assert "The TXT record was removed" in (released.reason or "")
    other = env.owner("other", "b1")
    claimed = await env.register(other)
    env.dns.texts["_roost-verify.app.example.com"] = records
    await env.prove(other)
    await env.domains.verify(other, claimed.id)
    with pytest.raises(DomainTaken):  # the first owner's record is back, too late
        await env.domains.verify(owner, made.id)


async def test_a_proof_that_returns_forgets_the_misses(database: Database) -> None:
    env = DomainNamesEnv(database)
    owner = env.owner()
    made = await env.register(owner)
    await env.prove(owner)
    await env.domains.verify(owner, made.id)
    records = env.dns.texts.pop("_roost-verify.app.example.com")
    for _ in range(3):
        await env.domains.check_ownership(AT_ONCE)
        await env.domains.check_ownership(AT_ONCE)
        env.dns.texts["_roost-verify.app.example.com"] = records
        assert await env.domains.check_ownership(AT_ONCE) == 0
        env.dns.texts.pop("_roost-verify.app.example.com")
    assert env.domains.mirror.get(made.name) is not None


async def test_limits_and_plans(database: Database) -> None:
    env = DomainNamesEnv(database)
    owner = env.owner()
    for number in range(5):
        await env.register(owner, f"a{number}.example.com")
    with pytest.raises(DomainLimitReached):
        await env.register(owner)
    with pytest.raises(CustomDomainsForbidden):
        await env.register(env.owner("free", "f1", Plan.FREE))
    again = env.owner("acme", "a2")
    await env.register(again, "b.example.com")
    with pytest.raises(DomainTaken):
        await env.register(again, "B.example.com.")


async def test_the_challenge_stays_the_same(database: Database) -> None:
    env = DomainNamesEnv(database)
    tenant_id = env.owner().tenant_id
    first = await env.domains.get_challenge(tenant_id, "app.example.com")
    for number in range(99):
        await env.domains.get_challenge(tenant_id, f"a{number}.example.com")
    assert await env.domains.get_challenge(tenant_id, "app.example.com") == first
    assert await env.domains.get_challenge(env.owner("other").tenant_id, "app.example.com") != first


async def test_changes_and_removal(database: Database) -> None:
    env = DomainNamesEnv(database)
    owner = env.owner()
    made = await env.domains.register_subdomain(owner, "ada", 3000, is_protected=False)
    changed = await env.domains.update(owner, made.id, lambda one: replace(one, port=4000))
    assert env.domains.mirror.get(made.name) == changed
    assert changed.port == 4000
    with pytest.raises(DomainNotFound):
        await env.domains.remove(env.owner("other"), made.id)
    await env.domains.remove(owner, made.id)
    assert env.domains.mirror.get(made.name) is None
    await env.domains.register_subdomain(env.owner("other", "b1"), "ada", None, is_protected=True)
