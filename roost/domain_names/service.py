"""Register domains, prove who owns them, and find where a host name leads."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import Connection

from roost.core import clock, ids, log
from roost.core.db import Database, DataChange, record_change
from roost.core.db.table_mirror import TableMirror
from roost.domain_names import names, store
from roost.domain_names.errors import (
    CustomDomainsForbidden,
    DomainLimitReached,
    DomainNotFound,
    DomainTaken,
    InvalidDomain,
    OwnershipNotProven,
)
from roost.domain_names.model import (
    DOMAIN_LIMIT,
    MISSES_BEFORE_RELEASE,
    Domain,
    DomainChallenge,
    DomainOwner,
    DomainOwnerKind,
    DomainStatus,
)
from roost.drivers.dns.contract import DnsResolver, DnsUnavailable
from roost.identity import tenants
from roost.identity.caller import Plan

MIRROR = "domains"
_CHALLENGES_LIMIT = 100
_BATCH_SIZE = 100
_log = log.get_logger("domains")

CheckCertificate = Callable[[str], Awaitable[str | None]]
"""Returns why no valid certificate is served for a name; None if one is."""


@dataclass(frozen=True)
class PlatformNames:
    """domain: that of the platform. parent: the domain below which subdomains are. reserved: words of no name."""

    domain: str
    parent: str | None
    reserved: Collection[str]


class DomainMirror(TableMirror[Domain]):
    """The verified domains by host name, in memory for the edge."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, MIRROR, store.list_verified)


@dataclass(frozen=True)
class DomainService:
    """Domains of agents and storage gateways; where no TLS is served, they need no certificate."""

    _db: Database
    mirror: DomainMirror
    _dns: DnsResolver
    _platform: PlatformNames
    _check_certificate: CheckCertificate | None = None

    async def list(self, owner: DomainOwner) -> Sequence[Domain]:
        """List an owner's domains, first registered first."""
        return await self._db.read(lambda connection: store.list_domains(connection, owner))

    async def list_gateway_domains(self, tenant_id: str) -> Sequence[Domain]:
        """List the domains of all storage gateways of a tenant, first registered first."""
        return await self._db.read(lambda connection: store.list_gateway_domains(connection, tenant_id))

    async def register_subdomain(
        self, owner: DomainOwner, label: str, port: int | None, *, is_protected: bool
    ) -> Domain:
        """Register a name below the platform's domain, which is active at once.

        Raises InvalidDomain, DomainTaken, DomainLimitReached.
        """
        if self._platform.parent is None:
            raise InvalidDomain("This server has no subdomains: its agents have ports instead of names")
        subdomain = names.parse_subdomain(label, self._platform.reserved)
        if ids.is_host_label(subdomain):  # the address of an agent, of today or tomorrow
            raise InvalidDomain(f"subdomain {subdomain} has the form of an agent's id")
        name = f"{subdomain}.{self._platform.parent}"
        return await self._register(_new(owner, name, subdomain, port, DomainStatus.ACTIVE, is_protected=is_protected))

    async def register_custom(
        self,
        owner: DomainOwner,
        text: str,
        port: int | None = None,
        *,
        is_protected: bool = True,
        cid: str | None = None,
    ) -> Domain:
        """Register a domain of the tenant's own, whose owner has to be verified.

        Raises InvalidDomain, CustomDomainsForbidden, DomainTaken, DomainLimitReached.
        """
        name = self._parse_custom(text)
        plan = (await self._db.read(lambda connection: tenants.get_tenant(connection, owner.tenant_id))).plan
        if plan is Plan.FREE:
            raise CustomDomainsForbidden
        challenge = await self.get_challenge(owner.tenant_id, name)
        new = _new(owner, name, None, port, DomainStatus.PENDING_OWNERSHIP, is_protected=is_protected)
        return await self._register(replace(new, reason=_describe_challenge(challenge), cid=cid))

    async def get_challenge(self, tenant_id: str, text: str) -> DomainChallenge:
        """Return the TXT record that proves a tenant's domain, always the same. Raises InvalidDomain."""
        name = self._parse_custom(text)

        def get(connection: Connection) -> str:
            if found := store.find_challenge(connection, tenant_id, name):
                return found
            tenants.lock_tenant(connection, tenant_id)
            store.delete_oldest_challenges(connection, tenant_id, _CHALLENGES_LIMIT - 1)
            store.insert_challenge(connection, tenant_id, name, ids.new_hex_secret(), clock.utc_now())
            return store.find_challenge(connection, tenant_id, name) or ""

        return DomainChallenge(name, await self._db.write(get))

    async def update(self, owner: DomainOwner, domain_id: str, change: Callable[[Domain], Domain]) -> Domain:
        """Apply `change` to a domain as it is now. Raises DomainNotFound, DomainTaken, and the errors of `change`."""

        def apply(connection: Connection) -> Domain:
            tenants.lock_tenant(connection, owner.tenant_id)
            current = _require(connection, owner, domain_id)
            changed = change(current)
            if changed == current:
                return current
            changed = replace(changed, updated_at=clock.utc_now())
            if not store.update_domain(connection, changed):
                raise DomainTaken
            self._publish(connection, changed, "updated")
            return changed

        changed = await self._db.write(apply)
        await self.mirror.refresh(changed.name)
        return changed

    async def lead_to_gateway(self, ports: Collection[int]) -> Sequence[Domain]:
        """Lead the domains of these ports to the gateways of their agents, protected; return those domains."""
        found = await self._db.read(lambda connection: store.list_at_ports(connection, ports))
        for domain in found:
            with suppress(DomainNotFound):  # removed meanwhile
                await self.update(domain.owner, domain.id, lambda one: replace(one, port=None, is_protected=True))
        return found

    async def remove(self, owner: DomainOwner, domain_id: str) -> Domain:
        """Remove a domain; connections through it end. Raises DomainNotFound."""

        def remove(connection: Connection) -> Domain:
            tenants.lock_tenant(connection, owner.tenant_id)
            found = _require(connection, owner, domain_id)
            self._delete(connection, found)
            return found

        removed = await self._db.write(remove)
        await self.mirror.refresh(removed.name)
        return removed

    def remove_all(self, connection: Connection, owner: DomainOwner) -> None:
        """Remove the domains of an owner in the caller's transaction."""
        for domain in store.list_domains(connection, owner):
            self._delete(connection, domain)

    async def verify(self, owner: DomainOwner, domain_id: str, admit: Callable[[str], None] = lambda _: None) -> Domain:
        """Look for the proof of ownership, and then for the certificate; return the domain as it is then.

        `admit` is called with the name before anything is looked up, and may raise. Raises DomainNotFound,
        OwnershipNotProven, DomainTaken, DnsUnavailable.
        """
        domain = await self._db.read(lambda connection: _require(connection, owner, domain_id))
        admit(domain.name)
        if not domain.is_verified:
            if not await self._is_proven(domain):
                raise OwnershipNotProven(_describe_challenge(await self._challenge_of(domain)))
            domain = await self.update(owner, domain_id, _mark_verified)
        reason = None if self._check_certificate is None else await self._check_certificate(domain.name)
        return await self.update(owner, domain_id, lambda current: _mark_served(current, reason))

    async def check_ownership(self, interval: timedelta) -> int:
        """Check the proofs that were not checked for `interval`; return how many domains were switched off."""
        before = clock.utc_now() - interval
        unchecked = await self._db.read(lambda connection: store.list_unchecked(connection, before, _BATCH_SIZE))
        released = 0
        for domain in unchecked:
            try:
                is_proven = await self._is_proven(domain)
            except DnsUnavailable:
                is_proven = None
            challenge = await self._challenge_of(domain)
            with suppress(DomainNotFound):
                checked = await self.update(
                    domain.owner,
                    domain.id,
                    lambda current, known=domain, is_proven=is_proven, challenge=challenge: (
                        _mark_checked(current, challenge, is_proven=is_proven)
                        if current.checked_at == known.checked_at  # no other server was faster
                        else current
                    ),
                )
                if not checked.is_verified:
                    _log.warning("domain.released", domain=domain.name, owner=domain.owner.id)
                    released += 1
        return released

    async def _register(self, domain: Domain) -> Domain:
        def register(connection: Connection) -> None:
            tenants.lock_tenant(connection, domain.owner.tenant_id)
            if len(store.list_domains(connection, domain.owner)) >= DOMAIN_LIMIT:
                raise DomainLimitReached(f"At most {DOMAIN_LIMIT} domains are possible")
            if store.find_holder(connection, domain.name) or not store.insert_domain(connection, domain):
                raise DomainTaken
            self._publish(connection, domain, "registered")

        await self._db.write(register)
        await self.mirror.refresh(domain.name)
        return domain

    def _delete(self, connection: Connection, domain: Domain) -> None:
        store.delete_domain(connection, domain.id)
        self._publish(connection, domain, "removed")

    def _publish(self, connection: Connection, domain: Domain, action: str) -> None:
        """Tell the edges and the tenant of a change, in its transaction."""
        self.mirror.publish_change(connection, domain.name)
        owner = domain.owner
        data = {"name": domain.name, "status": domain.status.value, "action": action, "owner": owner.kind.value}
        agent_id = owner.id if owner.kind is DomainOwnerKind.AGENT else None
        record_change(connection, DataChange("domain", "changed", domain.id, owner.tenant_id, agent_id, data))

    async def _is_proven(self, domain: Domain) -> bool:
        challenge = await self._challenge_of(domain)
        return challenge.record_value in await self._dns.find_texts(challenge.record_name)

    async def _challenge_of(self, domain: Domain) -> DomainChallenge:
        return await self.get_challenge(domain.owner.tenant_id, domain.name)

    def _parse_custom(self, text: str) -> str:
        return names.parse_custom_domain(text, self._platform.domain, self._platform.reserved)


def _new(
    owner: DomainOwner, name: str, subdomain: str | None, port: int | None, status: DomainStatus, *, is_protected: bool
) -> Domain:
    if port is None and not is_protected:
        raise InvalidDomain("A domain of the agent's gateway must be protected: it would be open to anyone")
    now = clock.utc_now()
    return Domain(
        id=ids.new_id(),
        owner=owner,
        name=name,
        subdomain=subdomain,
        port=port,
        is_protected=is_protected,
        status=status,
        created_at=now,
        updated_at=now,
    )


def _mark_verified(domain: Domain) -> Domain:
    if domain.is_verified:
        return domain
    return replace(domain, status=DomainStatus.PENDING, reason=None, misses=0, checked_at=clock.utc_now())


def _mark_served(domain: Domain, reason: str | None) -> Domain:
    """Return the domain after a check of its certificate, which lacks for `reason`."""
    if not domain.is_verified:  # it was switched off meanwhile
        return domain
    return replace(domain, status=DomainStatus.ACTIVE if reason is None else DomainStatus.PENDING, reason=reason)


def _mark_checked(domain: Domain, challenge: DomainChallenge, *, is_proven: bool | None) -> Domain:
    """Return the domain after a check of its proof; too many misses in a row switch it off.

    is_proven: None if no name server answered, which says nothing about the domain.
    """
    misses = domain.misses if is_proven is None else 0 if is_proven else domain.misses + 1
    checked = replace(domain, misses=misses, checked_at=clock.utc_now())
    if checked.misses < MISSES_BEFORE_RELEASE:
        return checked
    reason = f"The TXT record was removed. {_describe_challenge(challenge)}"
    return replace(checked, status=DomainStatus.PENDING_OWNERSHIP, reason=reason, misses=0)


def _require(connection: Connection, owner: DomainOwner, domain_id: str) -> Domain:
    found = store.get_domain(connection, owner, domain_id)
    if found is None:
        raise DomainNotFound
    return found


def _describe_challenge(challenge: DomainChallenge) -> str:
    return f"Add the TXT record {challenge.record_name} with the value {challenge.record_value}"
