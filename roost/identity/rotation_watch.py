"""Notice rotations of gateway tokens by other processes: other servers, and the command line beside this one."""

from datetime import timedelta

from roost.core import clock
from roost.core.db import Database
from roost.core.periodic import PeriodicTask
from roost.identity import store
from roost.identity.gateway_tokens import GatewayTokens

_INTERVAL = 0.5
_LOOK_BACK = timedelta(minutes=1)
"""More than the clocks of servers differ, and than a read of the database takes."""


class RotationWatch(PeriodicTask):
    """Task that closes what is open with a replaced token."""

    def __init__(self, db: Database, tokens: GatewayTokens) -> None:
        super().__init__("rotations of gateway tokens", self._look, _INTERVAL)
        self._db = db
        self._tokens = tokens

    async def _look(self) -> None:
        since = clock.utc_now() - _LOOK_BACK
        for agent_id, digest in await self._db.read(lambda connection: store.list_rotated_tokens(connection, since)):
            if not self._tokens.rotated.has(digest):
                self._tokens.rotated.put(digest, True)
                self._tokens.notify_changed(agent_id)
