"""What a handler is given: the operation, and the one safe way to write while it works on it."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from roost.core.db import Connection, Database
from roost.work import store
from roost.work.model import JSON, Operation

T = TypeVar("T")


@dataclass(frozen=True)
class ClaimedOperation(Operation):
    """An operation that this process holds."""

    db: Database = field(repr=False, compare=False)

    async def guard(self, fn: Callable[[Connection], T]) -> T:
        """`db.write(fn)`, unless this attempt is over: then LeaseLost, and nothing is written."""

        def fenced(connection: Connection) -> T:
            store.fence(connection, self)
            return fn(connection)

        return await self.db.write(fenced)


Handler = Callable[[ClaimedOperation], Awaitable[JSON]]
"""Does the work and returns the result, a JSON value.

It runs again from the start when an attempt was cut off, so every step must be one that can be done twice. It acts
outside the database and writes through `Claim.guard`. It is cancelled when the lease is lost and when the server stops.
"""


@dataclass(frozen=True)
class HandlerSpec:
    """How one kind of operation is done: by whom, and how often it is tried again."""

    handler: Handler
    retries: int

    async def do(self, claim: ClaimedOperation) -> JSON:
        result = await self.handler(claim)
        json.dumps(result, allow_nan=False)  # a result that cannot be stored is the handler's failure, not the write's
        return result
