"""Revoke a key, and tell which agents' gateway tokens its holder has read and still has."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from roost.agents.registry.repository import AgentRepository
from roost.identity.api_keys import ApiKeys
from roost.identity.errors import UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.model import TokenRead
from roost.identity.token_reads import TokenReads


@dataclass(frozen=True)
class KnownToken:
    """A gateway token that the holder of a key has: the name of its agent, and how it was read."""

    agent_name: str
    read: TokenRead


class KeyRevocation:
    def __init__(self, keys: ApiKeys, tokens: GatewayTokens, reads: TokenReads, agents: AgentRepository) -> None:
        self._keys = keys
        self._tokens = tokens
        self._reads = reads
        self._agents = agents

    async def list_tokens(self, tenant_id: str, key_name: str) -> Sequence[KnownToken]:
        """List what the holder of a key, also of a revoked one, has read. Raises ApiKeyNotFound."""
        key = await self._keys.find(tenant_id, key_name)
        names = {agent.id: agent.name for agent in await self._agents.list(tenant_id)}
        reads = await self._reads.list(key.id)
        return [KnownToken(names[read.agent_id], read) for read in reads if read.agent_id in names]

    async def revoke(self, tenant_id: str, key_name: str, *, rotates: bool) -> Sequence[KnownToken]:
        """Revoke a key, and replace the tokens that its holder has read if `rotates`. Return these tokens.

        A key that is revoked already is no error, so that its tokens can be replaced later. Raises ApiKeyNotFound.
        """
        if (await self._keys.find(tenant_id, key_name)).revoked_at is None:
            await self._keys.revoke(tenant_id, key_name)
        known = await self.list_tokens(tenant_id, key_name)
        for agent_id in {token.read.agent_id for token in known} if rotates else ():
            with suppress(UnknownAgent):  # deleted meanwhile
                await self._tokens.rotate(agent_id)
        return known
