# pyright: basic
"""A plugin of the Hermes gateway that wakes its scheduler when a job is due; runs in the container.

Hermes itself looks for due jobs once a minute, and has one time zone for all jobs. The plugin also computes the times
of our jobs in their own zones, and keeps an interrupted one-time job from starting again. Hermes still decides whether
and how a job runs, and that it runs once. If an agent writes an unreadable file of jobs, Hermes's own interval remains.
"""

import logging
import math
import time
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from zoneinfo import ZoneInfo

from cron import jobs  # pyright: ignore[reportMissingImports] - part of Hermes
from cron.scheduler_provider import InProcessCronScheduler  # pyright: ignore[reportMissingImports] - part of Hermes
from croniter import croniter  # pyright: ignore[reportMissingModuleSource] - a dependency of Hermes

Job = dict[str, Any]

_POLL_SECONDS = 0.5


class SchedulerWakeup:
    """Replacement of the gateway's stop event; a wait also ends when a job is due."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._last_change: int | None = None
        self._due = math.inf
        self._zoned_times: dict[str, str] = {}

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stop.wait(_POLL_SECONDS):
            self.refresh()
            if self._due <= time.time():
                self._last_change = None  # read the jobs again after the tick
                break
        return self._stop.is_set()

    def refresh(self) -> None:
        """If the file of jobs has changed, correct the jobs and find the next due time."""
        try:
            changed = jobs.JOBS_FILE.stat().st_mtime_ns if jobs.JOBS_FILE.exists() else 0
            if changed != self._last_change:
                self._last_change, self._due = changed, math.inf
                found = jobs.list_jobs(include_disabled=True) if changed else []
                self._due = min((_due(self._correct(job)) for job in found), default=math.inf)
        except Exception:
            logging.getLogger("cron.roost").warning("jobs.read_failed", exc_info=True)

    def _correct(self, job: Job) -> Job:
        ours = (job.get("repeat") or {}).get("roost")
        change = (self._zone_change(job, ours) or _state_change(job, ours) or _model_change(job)) if ours else None
        return (jobs.update_job(job["id"], change) or job) if change else job

    def _zone_change(self, job: Job, ours: Job) -> Job | None:
        """Return the next time in the job's zone, if Hermes has computed it in its own zone."""
        planned, zoned = job.get("next_run_at"), self._zoned_times.get(job["id"])
        if job["schedule"].get("kind") != "cron" or not job.get("enabled") or not planned or planned == zoned:
            return None
        if _epoch(planned) <= time.time():  # due: Hermes runs it at the tick
            return None
        moment = next_cron_time(job["schedule"]["expr"], ours["schedule"]["tz"], datetime.now(UTC))
        # In Hermes's zone, because Hermes takes another offset for a change of its zone.
        zoned = moment.astimezone(jobs._hermes_now().tzinfo).isoformat()  # noqa: SLF001 - Hermes has no public one
        self._zoned_times[job["id"]] = zoned
        return {"next_run_at": zoned} if planned != zoned else None


class RoostScheduler(InProcessCronScheduler):
    @property
    def name(self) -> str:
        return "roost"

    def start(self, stop_event: Event, **options: Any) -> None:
        wakeup = SchedulerWakeup(stop_event)
        _end_interrupted_jobs()
        wakeup.refresh()
        super().start(wakeup, **options)


def register_scheduler(ctx: Any) -> None:
    ctx.register_cron_scheduler(RoostScheduler())


register = register_scheduler  # the name that Hermes calls


def next_cron_time(expr: str, tz: str, now: datetime) -> datetime:
    """Return the first time after `now` at which the zone's local time matches a cron expression.

    In an hour that a clock change repeats, an expression for certain hours matches once; in a skipped hour, it matches
    later by the size of the change. An expression for every hour matches at every occurrence.
    """
    zone = ZoneInfo(tz)
    hourly = expr.split()[1].startswith("*")
    local_times = croniter(expr, now.astimezone(zone).replace(tzinfo=None) - timedelta(hours=3))
    best: datetime | None = None
    while True:
        local = local_times.get_next(datetime)
        first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if best is not None and first >= best:
            return best
        times = (
            [at for at in (first, second) if at.astimezone(zone).replace(tzinfo=None) == local] if hourly else [first]
        )
        best = min([at for at in (*times, best) if at is not None and at > now], default=None)


def _state_change(job: Job, ours: Job) -> Job | None:
    """Undo a manual run's change of the state: a disabled job stays disabled, a future one-time job stays enabled."""
    planned, at = job.get("next_run_at"), job["schedule"].get("run_at")
    if ours.get("off"):
        return {"enabled": False} if job.get("enabled") and planned and _epoch(planned) > time.time() else None
    if job.get("enabled") or job.get("state") != "completed" or not at or _epoch(at) <= time.time():
        return None
    return {"enabled": True, "state": "scheduled", "next_run_at": at}


def _model_change(job: Job) -> Job | None:
    """Allow the present model: by default Hermes runs a job only with the model of the day it was created."""
    return {"model_snapshot": None} if job.get("model_snapshot") else None


def _end_interrupted_jobs() -> None:
    """Mark one-time jobs as run if the gateway was killed while it ran them."""
    state = {"enabled": False, "state": "completed", "next_run_at": None, "run_claim": None}
    outcome = {"last_status": "error", "last_error": "The gateway was stopped during the run"}
    try:
        for job in jobs.list_jobs(include_disabled=True):
            if job.get("run_claim") and (job.get("repeat") or {}).get("roost"):
                jobs.update_job(job["id"], state | outcome)
    except Exception:
        logging.getLogger("cron.roost").warning("jobs.read_failed", exc_info=True)


def _due(job: Job) -> float:
    planned = job.get("next_run_at")
    return _epoch(planned) if planned and job.get("enabled") and not job.get("run_claim") else math.inf


def _epoch(moment: str) -> float:
    return jobs._ensure_aware(datetime.fromisoformat(moment)).timestamp()  # noqa: SLF001 - Hermes has no public one
