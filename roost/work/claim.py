"""Handlers of operations: their input, their result, and their guarded writes."""

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
    """Operation whose current attempt this process runs."""

    db: Database = field(repr=False, compare=False, kw_only=True)

    async def guard(self, fn: Callable[[Connection], T]) -> T:
        """Run `db.write(fn)` if this attempt is current. Raises LeaseLost."""

        def fenced(connection: Connection) -> T:
            self.require_current(connection)
            return fn(connection)

        return await self.db.write(fenced)

    def require_current(self, connection: Connection) -> None:
        """Lock this attempt until the transaction ends. Raises LeaseLost if it is not current."""
        store.lock_attempt(connection, self)


@dataclass(frozen=True)
class Settlement:
    """Result of a handler that ends its attempt and writes its own rows in one transaction.

    `write` calls `finish_operation` or `postpone_operation`. It is rolled back if the lease is lost.
    """

    write: Callable[[Connection], None]


Handler = Callable[[ClaimedOperation], Awaitable[JSON | Settlement]]
"""Runs one attempt and returns the result: a JSON value, or a `Settlement`.

An interrupted attempt is repeated from the start, so every step must be idempotent. A handler writes to the database
through `guard`. It is cancelled when the lease is lost and when the server stops.
"""


OnFailure = Callable[[Connection, Operation, str], object]
"""Records that an operation has failed, and why, where its owner sees it, in the transaction that ends it."""


@dataclass(frozen=True)
class HandlerSpec:
    """Handler of one kind of operation, with its number of retries.

    limits: None for ordered operations. slots: how many ordered ones may run at once now; None for the worker's limit.
    """

    handler: Handler
    retries: int
    limits: OperationLimits | None = None
    slots: Callable[[], int] | None = None
    on_failure: OnFailure | None = None

    async def run(self, claim: ClaimedOperation) -> JSON | Settlement:
        result = await self.handler(claim)
        if not isinstance(result, Settlement):
            json.dumps(result, allow_nan=False)  # a result that cannot be stored is the handler's error
        return result
