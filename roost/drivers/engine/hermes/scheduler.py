# pyright: basic
"""The clock of a Hermes gateway, as a plugin of it: runs in the container, with Hermes's own modules at hand.

Hermes looks for due jobs once a minute; this looks when one is due. It gives jobs of ours the wall time of their zone,
which Hermes knows for all jobs at once only, and sees to it that a job for one time that was cut off does not begin
again. Whether a job runs, how, and that it runs once stays Hermes's own business. An agent may write into the file of
jobs whatever it likes: then Hermes's minute is what is left.
"""

import logging
import math
import time
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from zoneinfo import ZoneInfo

from cron import jobs  # pyright: ignore[reportMissingImports] - Hermes's own
from cron.scheduler_provider import InProcessCronScheduler  # pyright: ignore[reportMissingImports] - Hermes's own
from croniter import croniter  # pyright: ignore[reportMissingModuleSource] - comes with Hermes

Job = dict[str, Any]

_LOOK_SECONDS = 0.5


class SchedulerWakeup:
    """Stands for the gateway's stop event: waits until a job is due, and no longer than it is told."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._seen: int | None = None
        self._due = math.inf
        self._given: dict[str, str] = {}

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stop.wait(_LOOK_SECONDS):
            self.look()
            if self._due <= time.time():
                self._seen = None  # whatever the tick makes of it is looked at
                break
        return self._stop.is_set()

    def look(self) -> None:
        """Settle the jobs and find the next that is due, if their file has changed."""
        try:
            changed = jobs.JOBS_FILE.stat().st_mtime_ns if jobs.JOBS_FILE.exists() else 0
            if changed != self._seen:
                self._seen, self._due = changed, math.inf
                found = jobs.list_jobs(include_disabled=True) if changed else []
                self._due = min((_due(self._settled(job)) for job in found), default=math.inf)
        except Exception:
            logging.getLogger("cron.roost").warning("jobs.read_failed", exc_info=True)

    def _settled(self, job: Job) -> Job:
        ours = (job.get("repeat") or {}).get("roost")
        change = (self._zoned(job, ours) or _switched(job, ours) or _unbound(job)) if ours else None
        return (jobs.update_job(job["id"], change) or job) if change else job

    def _zoned(self, job: Job, ours: Job) -> Job | None:
        """The next time by the zone's clock, for a job whose next time Hermes has worked out by its own."""
        planned, given = job.get("next_run_at"), self._given.get(job["id"])
        if job["schedule"].get("kind") != "cron" or not job.get("enabled") or not planned or planned == given:
            return None
        if _epoch(planned) <= time.time():  # it is due: that is for the tick
            return None
        moment = following(job["schedule"]["expr"], ours["schedule"]["tz"], datetime.now(UTC))
        given = self._given[job["id"]] = _hermes_time(moment).isoformat()
        return {"next_run_at": given} if planned != given else None


class RoostScheduler(InProcessCronScheduler):
    @property
    def name(self) -> str:
        return "roost"

    def start(self, stop_event: Event, **options: Any) -> None:
        clock = SchedulerWakeup(stop_event)
        _end_cut_off()
        clock.look()
        super().start(clock, **options)


def register(ctx: Any) -> None:
    ctx.register_cron_scheduler(RoostScheduler())


def following(expr: str, tz: str, now: datetime) -> datetime:
    """The first time after `now` that the zone's clock shows what the expression says. One that goes by certain hours
    runs once where an hour comes twice, and later by the jump where an hour is left out; one for every hour goes on.
    """
    zone = ZoneInfo(tz)
    hourly = expr.split()[1].startswith("*")
    walls = croniter(expr, now.astimezone(zone).replace(tzinfo=None) - timedelta(hours=3))
    best: datetime | None = None
    while True:
        wall = walls.get_next(datetime)
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if best is not None and first >= best:
            return best
        times = (
            [at for at in (first, second) if at.astimezone(zone).replace(tzinfo=None) == wall] if hourly else [first]
        )
        best = min([at for at in (*times, best) if at is not None and at > now], default=None)


def _switched(job: Job, ours: Job) -> Job | None:
    """A run by hand neither turns on what is off nor uses up a time that is yet to come."""
    planned, at = job.get("next_run_at"), job["schedule"].get("run_at")
    if ours.get("off"):
        return {"enabled": False} if job.get("enabled") and planned and _epoch(planned) > time.time() else None
    if job.get("enabled") or job.get("state") != "completed" or not at or _epoch(at) <= time.time():
        return None
    return {"enabled": True, "state": "scheduled", "next_run_at": at}


def _unbound(job: Job) -> Job | None:
    """Whoever runs the platform chooses its model; by itself a job refuses any but that of the day it was made."""
    return {"model_snapshot": None} if job.get("model_snapshot") else None


def _end_cut_off() -> None:
    """Jobs for one time that a gateway was at when it was killed have had their time."""
    ended = {"enabled": False, "state": "completed", "next_run_at": None, "run_claim": None}
    told = {"last_status": "error", "last_error": "The gateway was stopped during the run"}
    try:
        for job in jobs.list_jobs(include_disabled=True):
            if job.get("run_claim") and (job.get("repeat") or {}).get("roost"):
                jobs.update_job(job["id"], ended | told)
    except Exception:
        logging.getLogger("cron.roost").warning("jobs.read_failed", exc_info=True)


def _due(job: Job) -> float:
    planned = job.get("next_run_at")
    return _epoch(planned) if planned and job.get("enabled") and not job.get("run_claim") else math.inf


def _epoch(moment: str) -> float:
    return jobs._ensure_aware(datetime.fromisoformat(moment)).timestamp()  # noqa: SLF001 - its own reading of times


def _hermes_time(moment: datetime) -> datetime:
    """In the zone in which Hermes writes times: it takes another offset for a change of its zone."""
    return moment.astimezone(jobs._hermes_now().tzinfo)  # noqa: SLF001 - its own zone
