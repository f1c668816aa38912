"""Revoke a key, and tell which agents' gateway tokens its holder has read and still has."""

from collections.abc import Sequence
from contextlib import suppress

from roost.agents.registry.repository import AgentRepository
from roost.identity.api_keys import ApiKeys
from roost.identity.errors import UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens, TokenReads
from roost.identity.model import TokenRead

AgentTokenRead = tuple[str, TokenRead]
"""Name of an agent, and how its present token was read."""


class KeyRevocation:
    """Verbs on a key of a tenant, also a revoked one; on the server's own machine `tenant_id` is None, for any tenant.

    They raise ApiKeyNotFound.
    """

    def __init__(self, keys: ApiKeys, tokens: GatewayTokens, reads: TokenReads, agents: AgentRepository) -> None:
        self._keys = keys
        self._tokens = tokens
        self._reads = reads
        self._agents = agents

    async def list_reads(self, tenant_id: str | None, key_name: str) -> Sequence[AgentTokenRead]:
        """List the present tokens that the key, or its browser sessions, have read."""
        key = await self._keys.find(tenant_id, key_name)
        names = {agent.id: agent.profile.name for agent in await self._agents.list(key.tenant_id)}
        return [(names[read.agent_id], read) for read in await self._reads.list(key.id) if read.agent_id in names]

    async def revoke(self, tenant_id: str | None, key_name: str, *, rotates: bool) -> Sequence[AgentTokenRead]:
        """Revoke the key, unless it is, and replace the tokens that it has read if `rotates`; return their list."""
        key = await self._keys.find(tenant_id, key_name)
        if key.revoked_at is None:
            await self._keys.revoke(key.tenant_id, key.id)
        reads = await self.list_reads(tenant_id, key_name)
        for agent_id in {read.agent_id for _, read in reads} if rotates else ():
            with suppress(UnknownAgent):  # deleted meanwhile
                await self._tokens.rotate(agent_id)
        return reads
