"""Outcome of an attempt, as the function that writes it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from roost.core import clock
from roost.core.db import Connection
from roost.core.problem import Problem, ProblemKind
from roost.work import store
from roost.work.claim import ClaimedOperation, HandlerSpec, OnFailure, Settlement
from roost.work.model import CRASH_RETRIES, JSON, retry_delay

Write = Callable[[Connection], None]


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
    if not isinstance(error, Problem):
        return crash_outcome(claim, spec, spec.on_failure)
    retries = spec.retries if error.kind is ProblemKind.UNAVAILABLE else 0
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
