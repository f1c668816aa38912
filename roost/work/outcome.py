"""Outcome of an attempt, as the function that writes it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from roost.core import clock
from roost.core.db import Connection
from roost.core.problem import Problem, ProblemKind
from roost.work import store
from roost.work.claim import ClaimedOperation, Settlement
from roost.work.model import JSON, retry_delay

Write = Callable[[Connection], None]


def attempt_outcome(
    attempt: asyncio.Task[JSON | Settlement], claim: ClaimedOperation, retries: int, *, is_revoked: bool
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
    problem = error if isinstance(error, Problem) else Problem()
    temporary = problem is not error or problem.kind is ProblemKind.UNAVAILABLE
    return _failure_write(claim, problem, may_retry=temporary and claim.failures < retries)


def _settle(connection: Connection, claim: ClaimedOperation, settlement: Settlement) -> None:
    store.lock_attempt(connection, claim)
    settlement.write(connection)


def _failure_write(claim: ClaimedOperation, problem: Problem, *, may_retry: bool) -> Write:
    public_error = {"kind": problem.kind.value, "message": problem.message}
    if not may_retry:
        return partial(store.fail_operation, operation=claim, error=public_error)
    delay = max(retry_delay(claim.failures + 1), timedelta(seconds=problem.retry_after or 0))
    return partial(store.retry_operation, operation=claim, error=public_error, run_after=clock.utc_now() + delay)
