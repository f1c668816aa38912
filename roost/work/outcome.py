"""What the end of an attempt means for its operation, as the write that records it. Decides; does nothing itself."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from roost.core import clock
from roost.core.db import Connection
from roost.core.problem import Problem, ProblemKind
from roost.work import store
from roost.work.claim import ClaimedOperation
from roost.work.model import JSON, backoff

Write = Callable[[Connection], None]


def outcome(attempt: asyncio.Task[JSON], claim: ClaimedOperation, retries: int, *, given_up: bool) -> Write:
    """`given_up`: we cancelled it, so that its error says nothing. Any other cancellation is the handler's error."""
    error = asyncio.CancelledError() if attempt.cancelled() else attempt.exception()
    if error is None:
        return partial(store.finish, operation=claim, result=attempt.result())
    if given_up:
        return partial(store.give_back, operation=claim)
    problem = error if isinstance(error, Problem) else Problem()
    temporary = problem is not error or problem.kind is ProblemKind.UNAVAILABLE
    return _failed(claim, problem, again=temporary and claim.failures < retries)


def _failed(claim: ClaimedOperation, problem: Problem, *, again: bool) -> Write:
    shown = {"kind": problem.kind.value, "message": problem.message}
    if not again:
        return partial(store.fail, operation=claim, error=shown)
    pause = max(backoff(claim.failures + 1), timedelta(seconds=problem.retry_after or 0))
    return partial(store.retry, operation=claim, error=shown, run_after=clock.utc_now() + pause)
