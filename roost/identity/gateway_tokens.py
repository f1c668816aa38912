"""Gateway tokens: one per agent, 256 bits, stored sealed for reading and hashed for look-up (decision 0005).

A rotation takes effect at once: holders of open connections subscribe to changes and close them.
"""

import asyncio
import hmac
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.periodic import PeriodicTask
from roost.core.problem import ServiceUnavailable
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.core.ttl_cache import TTLCache
from roost.identity import store
from roost.identity.caller import Caller, CallerCache, CallerKind, token_digest
from roost.identity.errors import Unauthorised, UnknownAgent
from roost.identity.model import TokenRead

GATEWAY_TOKEN_PREFIX = "rst_gw"  # noqa: S105 - marks a token
_MAX_TOKEN_LENGTH = 256
_WATCH_SECONDS = 0.5
_LOOK_BACK = timedelta(minutes=1)
"""More than the clocks of servers differ, and than a read of the database takes."""


class GatewayTokens:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._sealer = sealer
        self.verified = CallerCache()
        self._listeners: list[Callable[[str], None]] = []
        self._held: defaultdict[str, set[asyncio.Timeout]] = defaultdict(set)
        self._changes = 0
        self.rotated = TTLCache[bytes, bool]()
        """Digests of new tokens whose subscribers were notified."""

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener(agent_id)` after each rotation or removal of a token."""
        self._listeners.append(listener)

    def mint(self, connection: Connection, agent_id: str, tenant_id: str) -> Sensitive[str]:
        """Create the token of a new agent in the caller's transaction."""
        token, sealed = self._new(agent_id)
        store.add_gateway_token(connection, agent_id, tenant_id, token_digest(token.reveal()), sealed, clock.utc_now())
        return token

    def revoke(self, connection: Connection, agent_id: str) -> None:
        """Remove the token of a deleted agent in the caller's transaction; call `notify_changed` after the commit."""
        store.remove_gateway_token(connection, agent_id)

    def notify_changed(self, agent_id: str) -> None:
        """Remove the agent's token from the cache and notify the subscribers."""
        self._changes += 1
        self.verified.drop(lambda caller: caller.agent_id == agent_id)
        for hold in self._held.pop(agent_id, ()):
            hold.reschedule(0)
        for listener in self._listeners:
            listener(agent_id)

    @asynccontextmanager
    async def hold_open(self, agent_id: str, digest: bytes | None = None) -> AsyncGenerator[None, None]:
        """Cancel the block and raise Unauthorised when the agent's token changes.

        With the `digest` of a token, for streams, also within a second after another server changes it.
        """
        hold = asyncio.timeout(None)
        watch = PeriodicTask("gateway token of a stream", partial(self._check, agent_id, digest or b""), _WATCH_SECONDS)
        try:
            async with hold:
                self._held[agent_id].add(hold)
                if digest is not None and not self._db.is_sqlite:  # which has one server
                    watch.start()
                try:
                    yield
                finally:
                    await watch.stop()
        except TimeoutError:
            raise (Unauthorised if hold.expired() else TimeoutError) from None
        finally:
            self._release(agent_id, hold)

    async def get_tenant_id(self, agent_id: str) -> str:
        """Return the id of the agent's tenant. Raises UnknownAgent."""
        row = await self._db.read(lambda connection: store.find_gateway_token(connection, agent_id))
        if row is None:
            raise UnknownAgent
        return row.tenant_id

    async def read(self, agent_id: str) -> Sensitive[str]:
        """Return the agent's token. Raises UnknownAgent."""
        return await self._db.read(lambda connection: self.reveal(connection, agent_id))

    def reveal(self, connection: Connection, agent_id: str) -> Sensitive[str]:
        """Return the agent's token in the caller's transaction. Raises UnknownAgent."""
        row = store.find_gateway_token(connection, agent_id)
        if row is None:
            raise UnknownAgent
        return Sensitive(self._sealer.open(row.sealed, _associated_data(agent_id)).reveal().decode())

    async def rotate(self, agent_id: str) -> Sensitive[str]:
        """Replace the token; the old one is invalid once this returns. Raises UnknownAgent."""

        def replace(connection: Connection) -> Sensitive[str]:
            token, sealed = self._new(agent_id)
            if not store.replace_gateway_token(
                connection, agent_id, token_digest(token.reveal()), sealed, clock.utc_now()
            ):
                raise UnknownAgent
            return token

        token = await self._db.write(replace)
        self.rotated.put(token_digest(token.reveal()), True)
        self.notify_changed(agent_id)
        return token

    def recall(self, token: str) -> Caller | None:
        """Return the caller of a token that was verified a moment ago."""
        return self.verified.get(token_digest(token)) if len(token) <= _MAX_TOKEN_LENGTH else None

    async def verify(self, token: str) -> Caller:
        """Return the caller of a valid token. Raises Unauthorised."""
        if (caller := self.recall(token)) is not None:
            return caller
        if len(token) > _MAX_TOKEN_LENGTH or not token.startswith(GATEWAY_TOKEN_PREFIX):
            raise Unauthorised
        key = token_digest(token)
        changes = self._changes
        row = await self._db.read(lambda connection: store.find_gateway_token_by_digest(connection, key))
        if row is None or not hmac.compare_digest(row.digest, key):
            raise Unauthorised
        if changes != self._changes:  # the token may have been rotated during the read
            return await self.verify(token)
        caller = Caller(CallerKind.GATEWAY, row.tenant_id, agent_id=row.agent_id, token_digest=key)
        self.verified.put(key, caller)
        return caller

    async def _check(self, agent_id: str, digest: bytes) -> None:
        """Notify the subscribers if no agent has the token with this digest any more."""
        try:
            row = await self._db.read(lambda connection: store.find_gateway_token_by_digest(connection, digest))
        except ServiceUnavailable:  # the database is away; it decides when it is back
            return
        if row is None:
            self.notify_changed(agent_id)

    def _release(self, agent_id: str, hold: asyncio.Timeout) -> None:
        if (held := self._held.get(agent_id)) is not None:
            held.discard(hold)
            if not held:
                del self._held[agent_id]

    def _new(self, agent_id: str) -> tuple[Sensitive[str], bytes]:
        token = ids.new_token(GATEWAY_TOKEN_PREFIX)
        return Sensitive(token), self._sealer.seal(token.encode(), _associated_data(agent_id))


def _associated_data(agent_id: str) -> str:
    return store.GATEWAY_TOKEN_ASSOCIATED_DATA.format(agent_id=agent_id)


class RotationWatch(PeriodicTask):
    """Task that closes what is open with a token that another process replaced: a server, or the command line."""

    def __init__(self, db: Database, tokens: GatewayTokens) -> None:
        super().__init__("rotations of gateway tokens", self._look, _WATCH_SECONDS)
        self._db = db
        self._tokens = tokens

    async def _look(self) -> None:
        since = clock.utc_now() - _LOOK_BACK
        for agent_id, digest in await self._db.read(lambda connection: store.list_rotated_tokens(connection, since)):
            if not self._tokens.rotated.has(digest):
                self._tokens.rotated.put(digest, True)
                self._tokens.notify_changed(agent_id)


class TokenReads:
    """Who has read which gateway token: a token outlives the key that its reader had.

    Each is written once for a key and a token, so that further reads cost nothing.
    """

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
