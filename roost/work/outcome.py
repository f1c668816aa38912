"""Outcome of an attempt, as the write that records it."""

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
    attempt: asyncio.Task[JSON | Settlement], claim: ClaimedOperation, retries: int, *, given_up: bool
) -> Write:
    """Return the write for a finished attempt.

    given_up: this process cancelled it, so its error says nothing. Any other cancellation is the handler's error.
    """
    error = asyncio.CancelledError() if attempt.cancelled() else attempt.exception()
    if error is None:
        result = attempt.result()
        if isinstance(result, Settlement):
            return partial(_settle, claim=claim, settlement=result)
        return partial(store.finish_operation, operation=claim, result=result)
    if given_up:
        return partial(store.give_back, operation=claim)
    problem = error if isinstance(error, Problem) else Problem()
    temporary = problem is not error or problem.kind is ProblemKind.UNAVAILABLE
    return _failed(claim, problem, again=temporary and claim.failures < retries)


def _settle(connection: Connection, claim: ClaimedOperation, settlement: Settlement) -> None:
    store.hold_attempt(connection, claim)
    settlement.write(connection)


def _failed(claim: ClaimedOperation, problem: Problem, *, again: bool) -> Write:
    shown = {"kind": problem.kind.value, "message": problem.message}
    if not again:
        return partial(store.fail_operation, operation=claim, error=shown)
    pause = max(retry_delay(claim.failures + 1), timedelta(seconds=problem.retry_after or 0))
    return partial(store.retry_operation, operation=claim, error=shown, run_after=clock.utc_now() + pause)
