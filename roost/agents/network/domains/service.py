"""Domains that lead to an agent: its gateway, or a port of its own programs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.agents.network.routes.model import GATEWAY_PORT, InvalidRoutes, check_port
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.core import log
from roost.domain_names.errors import InvalidDomain
from roost.domain_names.model import Domain, DomainChallenge, DomainOwner, DomainOwnerKind
from roost.domain_names.service import DomainService
from roost.drivers.runtime.contract import WARDEN_PORTS
from roost.identity.caller import Caller, CallerKind

_log = log.get_logger("domains")


@dataclass(frozen=True)
class AgentDomainService:
    """`origin` returns the public origin of a host name; `admit` checks and logs that an agent may reach a URL."""

    _runtimes: AgentRuntimes
    _domains: DomainService
    _origin: Callable[[str], str]
    _admit: Callable[[str, str], None]

    def origin(self, domain: Domain) -> str:
        return self._origin(domain.name)

    async def list(self, agent_id: str) -> Sequence[Domain]:
        """List the agent's domains, first registered first. Raises AgentNotFound."""
        return await self._domains.list(_owner(await self._runtimes.agents.get(agent_id)))

    async def register(
        self, agent_id: str, subdomain: str | None, custom_domain: str | None, port: int | None, *, is_protected: bool
    ) -> Domain:
        """Register one of the two names. Raises the errors of `DomainService`, and AgentNotFound."""
        agent = await self._runtimes.agents.get(agent_id)
        target = self._parse_port(agent, port)
        if subdomain is not None:
            return await self._domains.register_subdomain(_owner(agent), subdomain, target, is_protected=is_protected)
        return await self._domains.register_custom(
            _owner(agent), custom_domain or "", target, is_protected=is_protected
        )

    async def get_challenge(self, agent_id: str, custom_domain: str) -> DomainChallenge:
        """Return the TXT record that proves a domain. Raises InvalidDomain, AgentNotFound."""
        agent = await self._runtimes.agents.get(agent_id)
        return await self._domains.get_challenge(agent.tenant_id, custom_domain)

    async def update(self, agent_id: str, domain_id: str, port: int | None, *, is_protected: bool | None) -> Domain:
        """Change what is given. Raises InvalidDomain, DomainNotFound, AgentNotFound."""
        agent = await self._runtimes.agents.get(agent_id)

        def change(domain: Domain) -> Domain:
            target = domain.port if port is None else self._parse_port(agent, port)
            changed = replace(
                domain, port=target, is_protected=domain.is_protected if is_protected is None else is_protected
            )
            if changed.port is None and not changed.is_protected:
                raise InvalidDomain("A domain of the agent's gateway must be protected: it would be open to anyone")
            return changed

        return await self._domains.update(_owner(agent), domain_id, change)

    async def remove(self, agent_id: str, domain_id: str) -> Domain:
        """Remove a domain; connections through it end. Raises DomainNotFound, AgentNotFound."""
        return await self._domains.remove(_owner(await self._runtimes.agents.get(agent_id)), domain_id)

    def remove_all(self, connection: Connection, agent: Agent) -> None:
        """Remove the domains of an agent in the caller's transaction."""
        self._domains.remove_all(connection, _owner(agent))

    async def close_warden_ports(self) -> None:
        """Lead domains of the warden's ports, which earlier versions stored, to the gateways; owners get an event."""
        for domain in await self._domains.lead_to_gateway(WARDEN_PORTS):
            _log.warning("domain.led_to_gateway", agent=domain.owner.id, domain=domain.name, port=domain.port)

    async def verify(self, caller: Caller, agent_id: str, domain_id: str) -> Domain:
        """Verify ownership and certificate; for the holder of the agent's token within the agent's egress rules.

        Raises the errors of `DomainService.verify`, EgressRefused, AgentNotFound.
        """
        owner = _owner(await self._runtimes.agents.get(agent_id))
        if caller.kind is CallerKind.SERVICE:
            return await self._domains.verify(owner, domain_id)
        return await self._domains.verify(owner, domain_id, lambda name: self._admit(agent_id, f"https://{name}"))

    def _parse_port(self, agent: Agent, port: int | None) -> int | None:
        """Return the port of a program, None for the gateway's. Raises InvalidDomain."""
        gateway_port = self._runtimes.get_gateway_port(agent)
        if port in {None, GATEWAY_PORT, gateway_port}:
            return None
        try:
            return check_port(port or 0, gateway_port)
        except InvalidRoutes as problem:
            raise InvalidDomain(problem.message, field="targetPort") from None


def _owner(agent: Agent) -> DomainOwner:
    return DomainOwner(DomainOwnerKind.AGENT, agent.id, agent.tenant_id)
