"""Handlers of operations: their input, their result, and the guarded way to write while they work."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from roost.core.db import Connection, Database
from roost.work import store
from roost.work.model import JSON, Operation, OperationLimits

T = TypeVar("T")


@dataclass(frozen=True)
class ClaimedOperation(Operation):
    """Operation that this process holds."""

    db: Database = field(repr=False, compare=False)

    async def guard(self, fn: Callable[[Connection], T]) -> T:
        """Run `db.write(fn)` unless this attempt is over. Raises LeaseLost; nothing is written then."""

        def fenced(connection: Connection) -> T:
            store.hold_attempt(connection, self)
            return fn(connection)

        return await self.db.write(fenced)


@dataclass(frozen=True)
class Settlement:
    """Result of a handler that ends its attempt together with rows of its own.

    `write` runs in one transaction, which is rolled back when the lease is lost. It calls `finish` or `postpone`.
    """

    write: Callable[[Connection], None]


Handler = Callable[[ClaimedOperation], Awaitable[JSON | Settlement]]
"""Does the work and returns the result: a JSON value, or a `Settlement`.

It runs again from the start when an attempt was cut off, so every step must be safe to do twice. It acts outside the
database and writes through `guard`. It is cancelled when the lease is lost and when the server stops.
"""


@dataclass(frozen=True)
class HandlerSpec:
    """Handler of one kind of operation, the number of its retries, and its limits if it is not ordered."""

    handler: Handler
    retries: int
    limits: OperationLimits | None = None

    async def do(self, claim: ClaimedOperation) -> JSON | Settlement:
        result = await self.handler(claim)
        if not isinstance(result, Settlement):
            json.dumps(result, allow_nan=False)  # a result that cannot be stored is the handler's failure
        return result
