"""Who has read which gateway token: a token outlives the key that its reader had.

Each is written once for a key and a token, so that further reads cost nothing.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.core.sensitive import Sensitive
from roost.core.ttl_cache import TTLCache
from roost.identity import store
from roost.identity.caller import Caller
from roost.identity.caller_cache import token_digest
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.model import TokenRead


class TokenReads:
    def __init__(self, db: Database, tokens: GatewayTokens) -> None:
        self._db = db
        self._tokens = tokens
        self._written = TTLCache[tuple[str, bool, bytes], bool]()

    async def read(self, caller: Caller, agent_id: str) -> Sensitive[str]:
        """Return the agent's token for a caller. Raises UnknownAgent."""
        return await self._reveal(caller, agent_id, await self._tokens.read(agent_id))

    async def rotate(self, caller: Caller, agent_id: str) -> Sensitive[str]:
        """Replace the agent's token and return the new one for a caller. Raises UnknownAgent."""
        return await self._reveal(caller, agent_id, await self._tokens.rotate(agent_id))

    async def list(self, key_id: str) -> Sequence[TokenRead]:
        """List the present tokens that a key or its sessions have read, oldest first."""
        return await self._db.read(lambda connection: store.list_token_reads(connection, key_id))

    async def _reveal(self, caller: Caller, agent_id: str, token: Sensitive[str]) -> Sensitive[str]:
        if caller.key_id is None:
            return token
        entry = (caller.key_id, caller.session_digest is not None, token_digest(token.reveal()))
        if not self._written.has(entry):
            await self._db.write(lambda connection: note_read(connection, caller, agent_id))
            self._written.put(entry, True)
        return token


def note_read(connection: Connection, caller: Caller, agent_id: str) -> None:
    """Write down that the caller's key, if it has one, gets the agent's token."""
    if caller.key_id is not None:
        read = TokenRead(agent_id, caller.session_digest is not None, clock.utc_now())
        store.add_token_read(connection, caller.key_id, read)
