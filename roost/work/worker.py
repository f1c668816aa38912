"""The worker that runs operations: claim, act outside the database, record the outcome guarded by the attempt.

If this process dies, another one (or its next start) resumes the operation when its lease expires.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

from structlog.contextvars import bound_contextvars

from roost.core import clock, log
from roost.core.db import Connection, Database
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.work import store
from roost.work.claim import ClaimedOperation, Handler, HandlerSpec, Settlement
from roost.work.errors import LeaseLost
from roost.work.model import JSON, KEPT, LEASE_SECONDS, FreeSlots, Operation, OperationLimits
from roost.work.outcome import attempt_outcome

_POLL = 1.0
_CANCEL_SECONDS = 5.0
_SWEEP_SECONDS = 3600.0
_SWEPT_AT_ONCE = 500
_ORDERED = None

_log = log.get_logger("roost.work")


@dataclass
class _RunningOperation:
    """Operation that runs here. `safe_until` (monotonic) is when its lease may have expired at the earliest."""

    claim: ClaimedOperation
    attempt: asyncio.Task[JSON | Settlement]
    safe_until: float
    given_up: bool = False
    settled: asyncio.Task[None] | None = None

    def give_up(self) -> None:
        self.given_up = self.attempt.cancel() or self.given_up


class OperationWorker:
    """`owner` names this process among all that share the database. Use it from one event loop."""

    def __init__(self, db: Database, *, owner: str, lease: float = LEASE_SECONDS, limit: int = 32) -> None:
        self._db = db
        self._owner = owner
        self._lease = lease
        self._limit = limit
        self._duties: dict[str, HandlerSpec] = {}
        self._runs: dict[str, _RunningOperation] = {}
        self._claiming: dict[str | None, PeriodicTask] = {
            _ORDERED: PeriodicTask("operations claim", self._claim_ordered, _POLL)
        }
        self._extending = PeriodicTask("operations extend", self._extend, lease / 3)
        self._sweeping = PeriodicTask("operations sweep", self._sweep, _SWEEP_SECONDS)
        self._awaited: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._unsubscribe: Callable[[], None] | None = None

    def handle(self, kind: str, handler: Handler, *, retries: int = 0, limits: OperationLimits | None = None) -> None:
        """Run operations of `kind` with `handler`: ordered, or unordered within `limits`.

        An attempt that ends in a Problem fails the operation; one that ends in an unexpected exception or in a
        Problem of kind `unavailable` is tried again, up to `retries` times, with growing pauses. A handler with
        a schedule of its own returns a `Settlement` that postpones the operation.
        """
        if kind in self._duties:
            raise ValueError(f"{kind} has a handler already")
        self._duties[kind] = HandlerSpec(handler, retries, limits)
        if limits is not None:
            self._claiming[kind] = PeriodicTask(
                f"operations claim {kind}", partial(self._claim_unordered, kind, limits), _POLL
            )

    async def start(self) -> None:
        """Take up what an earlier process of the same name left, and begin.

        A SQLite database has a single server: whatever is leased there, its holder is dead.
        """
        owner = None if self._db.is_sqlite else self._owner
        if left := await self._db.write(lambda connection: store.release_operations(connection, owner)):
            _log.info("operations.resumed", count=left)
        self._unsubscribe = self._db.subscribe(self._wake_kinds)
        for task in (*self._claiming.values(), self._extending, self._sweeping):
            task.start()

    async def stop(self, grace: float = 10.0) -> None:
        """Claim nothing more, let handlers finish within `grace` seconds, then cancel them and give their work back."""
        if self._unsubscribe is None:
            return
        self._unsubscribe()
        self._unsubscribe = None
        await asyncio.gather(*(task.stop(grace) for task in self._claiming.values()))
        await self._settled(grace)
        for run in self._runs.values():
            run.give_up()
        await self._settled(_CANCEL_SECONDS)
        await self._extending.stop()
        await self._sweeping.stop()
        try:
            await self._db.write(lambda connection: store.release_operations(connection, self._owner))
        except Exception:  # noqa: BLE001 - the end of the loop: without a database the leases expire by themselves
            _log.exception("operations.not_released")

    def wake(self) -> None:
        """Look for due ordered operations now instead of at the next poll."""
        self._claiming[_ORDERED].wake()

    def _wake_kinds(self, kinds: frozenset[str]) -> None:
        for kind in kinds & self._duties.keys():
            self._claiming[self._queue(kind)].wake()

    def _queue(self, kind: str) -> str | None:
        """Return the key of the task that claims operations of a kind."""
        return _ORDERED if self._duties[kind].limits is None else kind

    async def wait(self, operation_id: str, timeout: float) -> Operation:  # noqa: ASYNC109 - running out is no error
        """Return the operation once it has finished, or after `timeout` seconds. Raises OperationNotFound."""
        event = self._awaited.setdefault(operation_id, asyncio.Event())
        deadline = clock.monotonic_seconds() + timeout
        while True:
            event.clear()
            operation = await self._db.read(lambda connection: store.get_operation(connection, operation_id))
            left = deadline - clock.monotonic_seconds()
            if operation.finished or left <= 0:
                return operation
            with suppress(TimeoutError):  # the poll sees what another process finishes
                async with asyncio.timeout(min(left, _POLL)):
                    await event.wait()

    async def _claim_ordered(self) -> None:
        kinds = [kind for kind in self._duties if self._queue(kind) is _ORDERED]
        held = [run.claim.id for run in self._runs.values() if run.claim.kind in kinds]
        limit = self._limit - len(held)
        if limit > 0:
            await self._claim(partial(store.claim_operations, kinds=kinds, limit=limit, held=held))

    async def _claim_unordered(self, kind: str, limits: OperationLimits) -> None:
        running = [run.claim for run in self._runs.values() if run.claim.kind == kind]
        held = [operation.id for operation in running]
        if len(held) < limits.total:

            def claim(connection: Connection, *, owner: str, until: datetime) -> Sequence[Operation]:
                slots = FreeSlots(limits, running)
                return store.claim_unordered(connection, kind, slots, owner=owner, until=until, held=held)

            await self._claim(claim)

    async def _claim(self, claim: Callable[..., Sequence[Operation]]) -> None:
        safe_until, until = self._next_lease()
        for operation in await self._db.write(lambda connection: claim(connection, owner=self._owner, until=until)):
            self._begin(ClaimedOperation(**vars(operation), db=self._db), safe_until)

    def _begin(self, claim: ClaimedOperation, safe_until: float) -> None:
        duty = self._duties[claim.kind]
        with bound_contextvars(operation=claim.id, kind=claim.kind, subject=claim.subject):
            run = _RunningOperation(claim, asyncio.create_task(duty.do(claim)), safe_until)
            run.settled = asyncio.create_task(self._settle(run, duty.retries))
        self._runs[claim.id] = run

    async def _settle(self, run: _RunningOperation, retries: int) -> None:
        """Wait for the attempt and record how it ended; run it again after its lease if that fails."""
        try:
            await asyncio.wait({run.attempt})
            _report(run)
            await self._db.write(attempt_outcome(run.attempt, run.claim, retries, given_up=run.given_up))
        except LeaseLost:
            _log.warning("operation.lease_lost", attempt=run.claim.attempts)
        except Exception:  # noqa: BLE001 - the edge of a run
            _log.exception("operation.not_recorded")
        finally:
            del self._runs[run.claim.id]
            if event := self._awaited.get(run.claim.id):
                event.set()
            self._claiming[self._queue(run.claim.kind)].wake()

    async def _settled(self, seconds: float) -> None:
        if tasks := {run.settled for run in self._runs.values() if run.settled}:
            await asyncio.wait(tasks, timeout=seconds)

    async def _extend(self) -> None:
        """Extend the leases of running operations; cancel those that another process may claim before the next run."""
        interval = self._lease / 3
        try:
            async with asyncio.timeout(interval):
                await self._extend_leases()
        finally:
            for run in self._runs.values():
                if run.safe_until < clock.monotonic_seconds() + interval:
                    run.give_up()

    async def _extend_leases(self) -> None:
        if not (runs := list(self._runs.values())):
            return
        safe_until, until = self._next_lease()
        claims = [run.claim for run in runs]
        kept = await self._db.write(lambda connection: store.extend_leases(connection, claims, until))
        for run in runs:
            if run.claim.id in kept:
                run.safe_until = safe_until
            else:
                run.give_up()

    async def _sweep(self) -> None:
        before = clock.utc_now() - KEPT
        while await self._db.write(lambda connection: store.sweep_operations(connection, before, _SWEPT_AT_ONCE)):
            pass

    def _next_lease(self) -> tuple[float, datetime]:
        """When a lease that is written from now on ends: on the clock of this process, and as all see it."""
        return clock.monotonic_seconds() + self._lease, clock.utc_now() + timedelta(seconds=self._lease)


def _report(run: _RunningOperation) -> None:
    if run.attempt.cancelled():
        _log.warning("operation.cancelled", attempt=run.claim.attempts, by_us=run.given_up)
    elif isinstance(error := run.attempt.exception(), Problem):
        _log.info("operation.failed", attempt=run.claim.attempts, problem=error.message)
    elif error is not None:
        _log.error("operation.crashed", attempt=run.claim.attempts, exc_info=error)
