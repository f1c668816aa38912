"""Handlers of operations: their input, their guarded writes, and the outcome of an attempt."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.problem import Problem
from roost.work import store
from roost.work.model import CRASH_RETRIES, JSON, Operation, OperationLimits, SubjectElsewhere, retry_delay

T = TypeVar("T")
Write = Callable[[Connection], None]


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


def attempt_outcome(
    attempt: asyncio.Task[JSON | Settlement], claim: ClaimedOperation, spec: HandlerSpec, *, is_revoked: bool
) -> Write:
    """Return the function that writes the outcome of an attempt.

    is_revoked: the worker cancelled the attempt. Any other cancellation is an error of the handler.
    """
    error = asyncio.CancelledError() if attempt.cancelled() else attempt.exception()
    if error is None:
        result = attempt.result()
        if isinstance(result, Settlement):
            return partial(_settle, claim=claim, settlement=result)
        return partial(store.finish_operation, operation=claim, result=result)
    if is_revoked:
        return partial(store.release_operation, operation=claim)
    if isinstance(error, SubjectElsewhere) and error.host is not None:
        return partial(store.postpone_operation, operation=claim, run_after=clock.utc_now(), host=error.host)
    if not isinstance(error, Problem):
        return crash_outcome(claim, spec, spec.on_failure)
    retries = spec.retries if error.kind.is_temporary else 0
    return _failure_write(claim, error, retries, spec.on_failure)


def crash_outcome(claim: ClaimedOperation, spec: HandlerSpec, on_failure: OnFailure | None = None) -> Write:
    """Return the function that writes that an attempt, or the writing of its outcome, ended in an exception."""
    return _failure_write(claim, Problem(), min(spec.retries, CRASH_RETRIES), on_failure)


def _settle(connection: Connection, claim: ClaimedOperation, settlement: Settlement) -> None:
    store.lock_attempt(connection, claim)
    settlement.write(connection)


def _failure_write(claim: ClaimedOperation, problem: Problem, retries: int, on_failure: OnFailure | None) -> Write:
    public_error = {"kind": problem.kind.value, "message": problem.message}
    if claim.failures < retries:
        delay = max(retry_delay(claim.failures + 1), timedelta(seconds=problem.retry_after or 0))
        return partial(store.retry_operation, operation=claim, error=public_error, run_after=clock.utc_now() + delay)

    def fail(connection: Connection) -> None:
        store.fail_operation(connection, claim, public_error)
        if on_failure is not None:
            on_failure(connection, claim, problem.message)

    return fail
