"""The worker of operations: it claims them, runs their handlers, and records the outcomes (decision 0015).

If this process dies, another one (or its next start) resumes the operation when its lease expires.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

from structlog.contextvars import bound_contextvars

from roost.core import clock, log
from roost.core.actor import SERVER, acting_as
from roost.core.db import Connection, Database
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem, ServiceUnavailable
from roost.work import store
from roost.work.claim import (
    ClaimedOperation,
    Handler,
    HandlerSpec,
    OnFailure,
    Settlement,
    Write,
    attempt_outcome,
    crash_outcome,
)
from roost.work.faults import sweep_faults
from roost.work.model import (
    JSON,
    LEASE_SECONDS,
    RETENTION,
    FreeSlots,
    LeaseLost,
    Operation,
    OperationLimits,
    wake_topic,
)

_POLL_SECONDS = 1.0
_CANCEL_SECONDS = 5.0
_SWEEP_SECONDS = 3600.0
_SWEEP_BATCH = 500
_ORDERED = None

_log = log.get_logger("roost.work")


@dataclass
class _RunningOperation:
    """Operation that runs here.

    safe_until: the monotonic time until which its lease cannot expire. is_revoked: the worker cancelled the attempt.
    """

    claim: ClaimedOperation
    attempt: asyncio.Task[JSON | Settlement]
    safe_until: float
    is_revoked: bool = False
    settling: asyncio.Task[None] | None = None

    def revoke(self) -> None:
        self.is_revoked = self.attempt.cancel() or self.is_revoked


class OperationWorker:
    """Worker for one event loop; `owner` names it uniquely among the processes that share the database.

    It claims operations of the host `owner`, and those of no host.
    """

    def __init__(self, db: Database, *, owner: str, lease: float = LEASE_SECONDS, limit: int = 32) -> None:
        self.db = db
        self._owner = owner
        self._lease = lease
        self._limit = limit
        self._handlers: dict[str, HandlerSpec] = {}
        self._kinds_by_topic: dict[str, str] = {}
        self._running: dict[str, _RunningOperation] = {}
        self._claim_tasks: dict[str | None, PeriodicTask] = {
            _ORDERED: PeriodicTask("operations claim", self._claim_ordered, _POLL_SECONDS)
        }
        self._extend_task = PeriodicTask("operations extend", self._extend, lease / 3)
        self._release_task = PeriodicTask("operations release", self._release_expired, lease / 3)
        self._sweep_task = PeriodicTask("operations sweep", self._sweep, _SWEEP_SECONDS)
        self._finish_events: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._unsubscribe: Callable[[], None] | None = None
        self._waits_end = float("inf")

    def handle(
        self,
        kind: str,
        handler: Handler,
        *,
        retries: int = 0,
        limits: OperationLimits | None = None,
        slots: Callable[[], int] | None = None,
        on_failure: OnFailure | None = None,
    ) -> None:
        """Register the handler of a kind, whose operations are ordered, or unordered within `limits`.

        Ordered ones with `slots` run at most so many at once, those that someone asked for before the server's own.

        An attempt that ends in a Problem fails the operation; one that ends in a Problem of a temporary kind is
        retried up to `retries` times, with growing delays, and one that ends in an unexpected exception up to
        `CRASH_RETRIES` times of them. A handler with its own schedule returns a `Settlement` that postpones the
        operation. `on_failure` tells the owner of the subject that the operation has failed.
        """
        if kind in self._handlers:
            raise ValueError(f"{kind} already has a handler")
        self._handlers[kind] = HandlerSpec(handler, retries, limits, slots, on_failure)
        self._kinds_by_topic |= {wake_topic(kind, host): kind for host in (None, self._owner)}
        if limits is not None:
            self._claim_tasks[kind] = PeriodicTask(
                f"operations claim {kind}", partial(self._claim_unordered, kind, limits), _POLL_SECONDS
            )

    async def start(self) -> None:
        """Release the operations of an earlier process of the same name, and start to claim."""
        # A SQLite database has a single server, so all leases in it are those of dead processes.
        owner = None if self.db.is_sqlite else self._owner
        if count := await self.db.write(lambda connection: store.release_operations(connection, owner)):
            _log.info("operations.resumed", count=count)
        self._unsubscribe = self.db.subscribe(self._wake_kinds)
        for task in (*self._claim_tasks.values(), self._extend_task, self._sweep_task):
            task.start()
        if not self.db.is_sqlite:
            self._release_task.start()

    async def stop(self, grace: float = 10.0) -> None:
        """Stop claiming, let handlers finish within `grace` seconds, then cancel them and release their operations."""
        if self._unsubscribe is None:
            return
        self._unsubscribe()
        self._unsubscribe = None
        await asyncio.gather(*(task.stop(grace) for task in self._claim_tasks.values()))
        await self._wait_until_settled(grace)
        for run in self._running.values():
            run.revoke()
        await self._wait_until_settled(_CANCEL_SECONDS)
        await self._extend_task.stop()
        await self._release_task.stop()
        await self._sweep_task.stop()
        try:
            await self.db.write(lambda connection: store.release_operations(connection, self._owner))
        except Exception:  # noqa: BLE001 - without a database the leases expire by themselves
            _log.exception("operations.not_released")

    def _wake_kinds(self, topics: frozenset[str]) -> None:
        for topic in topics & self._kinds_by_topic.keys():
            self._claim_tasks[self._claim_task_key(self._kinds_by_topic[topic])].wake()

    def _claim_task_key(self, kind: str) -> str | None:
        """Return the key of the task that claims operations of a kind."""
        return _ORDERED if self._handlers[kind].limits is None else kind

    def limit_waits(self, seconds: float) -> None:
        """Let present and later calls of `wait` return after `seconds`, because the server stops."""
        self._waits_end = clock.monotonic_seconds() + seconds

    async def wait(
        self,
        operation_id: str,
        timeout: float,  # noqa: ASYNC109 - a timeout is no error
        *,
        queue_timeout: float = 0.0,
    ) -> Operation:
        """Wait until an operation has finished, or for `timeout` seconds; return it. Raises OperationNotFound.

        The timeout begins with the first attempt, or after `queue_timeout` seconds without one.
        """
        event = self._finish_events.setdefault(operation_id, asyncio.Event())
        began = clock.monotonic_seconds()
        queue_end = began + queue_timeout
        while True:
            event.clear()
            operation = await self.db.read(lambda connection: store.get_operation(connection, operation_id))
            now = clock.monotonic_seconds()
            if not operation.attempts:
                began = min(now, queue_end)
            remaining = min(began + timeout, self._waits_end) - now
            if operation.is_finished or remaining <= 0:
                return operation
            with suppress(TimeoutError):  # another process may finish it, which only a read shows
                async with asyncio.timeout(min(remaining, _POLL_SECONDS)):
                    await event.wait()

    async def _claim_ordered(self) -> None:
        ordered = {kind: spec.slots for kind, spec in self._handlers.items() if spec.limits is None}
        await self._claim_kinds([kind for kind, slots in ordered.items() if slots is None], self._limit)
        for kind, slots in ordered.items():
            if slots is not None:
                await self._claim_kinds([kind], slots(), requested_first=True)

    async def _claim_kinds(self, kinds: Sequence[str], limit: int, *, requested_first: bool = False) -> None:
        exclude = [run.claim.id for run in self._running.values() if run.claim.kind in kinds]
        if (free := limit - len(exclude)) > 0:
            claim = partial(store.claim_operations, kinds=kinds, limit=free, exclude=exclude)
            await self._claim(partial(claim, requested_first=requested_first))

    async def _claim_unordered(self, kind: str, limits: OperationLimits) -> None:
        running = [run.claim for run in self._running.values() if run.claim.kind == kind]
        if len(running) < limits.total:

            def claim(connection: Connection, *, owner: str, until: datetime) -> Sequence[Operation]:
                return store.claim_unordered(connection, kind, FreeSlots(limits, running), owner=owner, until=until)

            await self._claim(claim)

    async def _claim(self, claim: Callable[..., Sequence[Operation]]) -> None:
        safe_until, until = self._next_lease()
        for operation in await self.db.write(lambda connection: claim(connection, owner=self._owner, until=until)):
            self._begin(ClaimedOperation(**vars(operation), db=self.db), safe_until)

    def _begin(self, claim: ClaimedOperation, safe_until: float) -> None:
        spec = self._handlers[claim.kind]
        log_fields = bound_contextvars(operation=claim.id, kind=claim.kind, subject=claim.subject)
        with log_fields, acting_as(claim.actor or SERVER):
            run = _RunningOperation(claim, asyncio.create_task(spec.run(claim)), safe_until)
            run.settling = asyncio.create_task(self._settle(run, spec))
        self._running[claim.id] = run

    async def _settle(self, run: _RunningOperation, spec: HandlerSpec) -> None:
        """Record the outcome of the attempt at its end."""
        try:
            await asyncio.wait({run.attempt})
            _log_outcome(run, is_stopping=self._unsubscribe is None)
            outcome = attempt_outcome(run.attempt, run.claim, spec, is_revoked=run.is_revoked)
            await self._record(outcome, otherwise=crash_outcome(run.claim, spec))
        finally:
            del self._running[run.claim.id]
            if event := self._finish_events.get(run.claim.id):
                event.set()
            self._claim_tasks[self._claim_task_key(run.claim.kind)].wake()

    async def _record(self, outcome: Write, otherwise: Write | None = None) -> None:
        """Write an outcome; if the database refuses it, which it would do again, write `otherwise`.

        If nothing can be written, the operation runs again after its lease.
        """
        try:
            await self.db.write(outcome)
        except LeaseLost:
            _log.warning("operation.lease_lost")
        except ServiceUnavailable as problem:
            _log.warning("operation.not_recorded", reason=problem.message)
        except Exception:  # noqa: BLE001 - the edge of a task
            _log.exception("operation.not_recorded")
            if otherwise is not None:
                await self._record(otherwise)

    async def _wait_until_settled(self, seconds: float) -> None:
        if tasks := {run.settling for run in self._running.values() if run.settling}:
            await asyncio.wait(tasks, timeout=seconds)

    async def _extend(self) -> None:
        """Extend the leases of running operations; cancel those whose lease may expire before the next extension."""
        interval = self._lease / 3
        try:
            async with asyncio.timeout(interval):
                await self._extend_leases()
        finally:
            for run in self._running.values():
                if run.safe_until < clock.monotonic_seconds() + interval:
                    run.revoke()

    async def _extend_leases(self) -> None:
        if not (runs := list(self._running.values())):
            return
        safe_until, until = self._next_lease()
        claims = [run.claim for run in runs]
        extended_ids = await self.db.write(lambda connection: store.extend_leases(connection, claims, until))
        for run in runs:
            if run.claim.id in extended_ids:
                run.safe_until = safe_until
            else:
                run.revoke()

    async def _release_expired(self) -> None:
        """Let unordered operations of processes that died run again; those of ordered ones are claimed as they are."""
        kinds = [kind for kind, spec in self._handlers.items() if spec.limits is not None]
        running = [run.claim.id for run in self._running.values()]
        await self.db.write(lambda connection: store.release_expired(connection, kinds, running))

    async def _sweep(self) -> None:
        before = clock.utc_now() - RETENTION
        while await self.db.write(lambda connection: store.sweep_operations(connection, before, _SWEEP_BATCH)):
            pass
        await self.db.write(lambda connection: sweep_faults(connection, before))

    def _next_lease(self) -> tuple[float, datetime]:
        """Return the end of a lease that is written now, as monotonic time of this process and as UTC."""
        return clock.monotonic_seconds() + self._lease, clock.utc_now() + timedelta(seconds=self._lease)


def _log_outcome(run: _RunningOperation, *, is_stopping: bool) -> None:
    if run.attempt.cancelled():
        level = logging.INFO if is_stopping else logging.WARNING  # the next worker continues what a stop cut off
        _log.log(level, "operation.cancelled", attempt=run.claim.attempts, by_worker=run.is_revoked)
    elif isinstance(error := run.attempt.exception(), Problem):
        _log.info("operation.failed", attempt=run.claim.attempts, problem=error.message)
    elif error is not None:
        _log.error("operation.crashed", attempt=run.claim.attempts, exc_info=error)
