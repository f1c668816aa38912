"""Hermes's tasks: its jobs, over its REST API, with a clock of ours in its gateway (`scheduler.py`).

A job has no place for all that a task is, so what was asked is kept word for word in a field of it that Hermes carries
along (`repeat`). Hermes has one kind of session and one way to run a turn: options for that are refused, not ignored.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from roost.core import clock
from roost.core.problem import Problem
from roost.drivers.engine import http
from roost.drivers.engine import task_json as form
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    EngineTaskNotFound,
    EngineTaskRefused,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    Task,
    TaskAbility,
    TaskChange,
    TaskDelivery,
    TaskPayload,
    TaskRun,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.runtime.contract import HOME

Json = dict[str, Any]

CLOCK = Path(__file__).with_name("scheduler.py").read_bytes()
_RUNS = Path(__file__).with_name("runs.py").read_text()
_MOST = 200
_UNTIL_IT_IS_WHOLE = timedelta(days=300)
_STATES = {"completed": "ok", "failed": "error", "claimed": "running", "running": "running"}


class HermesTasks(TaskAbility):
    def __init__(self, port: int, python: str) -> None:
        self._port = port
        self._python = python

    async def list(self, inside: AgentContext) -> Sequence[Task]:
        answer, running = await asyncio.gather(
            self._ask(inside, "GET /api/jobs?include_disabled=true"), self._running(inside)
        )
        tasks = [_task(job, running) for job in form.items(answer.get("jobs")) if isinstance(job.get("id"), str)]
        return sorted(tasks, key=lambda task: (str(task.created_at), task.id))[:_MOST]

    async def get(self, inside: AgentContext, task_id: str) -> Task:
        return _task(await self._job(inside, task_id), await self._running(inside))

    async def create(self, inside: AgentContext, spec: TaskSpec) -> Task:
        """In two steps, since only a change may say all. In between the job is due in the far future."""
        change = _change({}, TaskChange(**vars(spec)))
        later = (clock.utc_now() + _UNTIL_IT_IS_WHOLE).isoformat(timespec="seconds")
        made = await self._ask(inside, "POST /api/jobs", {**change, "schedule": later, "repeat": 1})
        task_id = _job(made).get("id")
        try:
            return _task(_job(await self._ask(inside, f"PATCH /api/jobs/{task_id}", change)), set())
        except Problem:
            await self._ask(inside, f"DELETE /api/jobs/{task_id}")
            raise

    async def update(self, inside: AgentContext, task_id: str, change: TaskChange) -> Task:
        job = await self._job(inside, task_id)
        form.check_time_left(_schedule(job), change)
        answer = await self._ask(inside, f"PATCH /api/jobs/{task_id}", _change(job, change))
        if change.enabled:
            answer = await self._ask(inside, f"POST /api/jobs/{task_id}/resume")
        return _task(_job(answer), await self._running(inside))

    async def delete(self, inside: AgentContext, task_id: str) -> None:
        await self._ask(inside, f"DELETE /api/jobs/{task_id}")

    async def run(self, inside: AgentContext, task_id: str) -> None:
        job = await self._job(inside, task_id)
        off = {**_kept(job), "off": job.get("enabled") is not True}
        if "schedule" in off:
            await self._ask(inside, f"PATCH /api/jobs/{task_id}", {"repeat": _repeat(off)})
        await self._ask(inside, f"POST /api/jobs/{task_id}/run")

    async def runs(self, inside: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        await self._job(inside, task_id)
        return [_run(row) for row in await self._rows(inside, task_id, limit)]

    async def _job(self, inside: AgentContext, task_id: str) -> Json:
        return _job(await self._ask(inside, f"GET /api/jobs/{task_id}"))

    async def _ask(self, inside: AgentContext, order: str, body: Json | None = None) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        status, answer = await http.send_json(inside.warden.dial, self._port, order, headers, body)
        if status == 404 or (status == 400 and body is None):  # what is no id of Hermes's is a 400
            raise EngineTaskNotFound
        if status == 400:
            raise EngineTaskRefused(str(answer.get("error"))[:500])
        if status != 200:
            raise EngineFailed(f"The gateway answered {status}")
        return answer

    async def _running(self, inside: AgentContext) -> set[str]:
        return {str(row.get("id")) for row in await self._rows(inside, "*", _MOST)}

    async def _rows(self, inside: AgentContext, task_id: str, limit: int) -> Sequence[Mapping[str, Any]]:
        order = [self._python, "-I", "-c", _RUNS, f"{HOME}/.hermes", task_id, str(limit)]
        result = await inside.warden.exec(order, timeout=10.0, output_limit=2 << 20)
        try:
            return form.items(json.loads(result.stdout))
        except (ValueError, RecursionError):
            raise EngineFailed("The history of the task cannot be read") from None


def _change(job: Json, change: TaskChange) -> Json:
    """What to send. Raises TaskRefused for what Hermes has nothing for."""
    _check(change)
    kept = {**_kept(job), **form.written(change)}
    fields: Json = {"name": change.name, "enabled": change.enabled}
    if change.schedule is not None:
        fields["schedule"] = _hermes_schedule(change.schedule)
    if change.payload is not None:
        fields["prompt"] = change.payload.text
    if change.delivery is not None:
        fields["deliver"] = _deliver(change.delivery)
    if "schedule" in kept:
        fields["repeat"] = _repeat({**kept, "off": False})
    return {name: value for name, value in fields.items() if value is not None}


def _check(change: TaskChange) -> None:
    payload, delivery, schedule = change.payload, change.delivery, change.schedule
    if payload and (payload.model or payload.thinking or payload.timeout_seconds):
        raise EngineTaskRefused
    if delivery and (delivery.mode == "webhook" or (delivery.mode == "announce" and not delivery.channel)):
        raise EngineTaskRefused
    if isinstance(schedule, CronSchedule) and schedule.stagger_ms:
        raise EngineTaskRefused
    if change.wake_mode == "next-heartbeat":
        raise EngineTaskRefused


def _repeat(kept: Json) -> Json:
    """No limit: a job that had its last time would vanish, and its outcome with it."""
    return {"times": None, "completed": 0, "roost": kept}


def _kept(job: Json) -> Json:
    return dict(form.mapping(form.mapping(job.get("repeat")).get("roost")))


def _hermes_schedule(asked: Schedule) -> Json:
    match asked:
        case OneTimeSchedule(at):
            return {"kind": "once", "run_at": at.isoformat(), "display": f"once at {at:%Y-%m-%d %H:%M}"}
        case IntervalSchedule(every_ms):
            return {"kind": "interval", "minutes": every_ms / 60_000, "display": f"every {every_ms / 60_000:g}m"}
        case CronSchedule(expr, tz):
            return {"kind": "cron", "expr": expr, "display": f"{expr} {tz}"}


def _deliver(asked: TaskDelivery) -> str:
    if asked.mode == "none":
        return "local"
    return f"{asked.channel}:{asked.to}" if asked.to else str(asked.channel)


def _job(answer: Mapping[str, Any]) -> Json:
    job = form.mapping(answer.get("job"))
    if not isinstance(job.get("id"), str):
        raise EngineFailed("The gateway answered with no job")
    return cast("Json", job)


def _task(job: Mapping[str, Any], running: set[str]) -> Task:
    kept = form.mapping(form.mapping(job.get("repeat")).get("roost"))
    on = job.get("enabled") is True and not kept.get("off")
    planned = form.iso(job.get("next_run_at"))
    return Task(
        id=job["id"],
        name=form.text(job.get("name")) or job["id"],
        description=form.text(kept.get("description")),
        enabled=on,
        schedule=_schedule(job),
        payload=form.payload(kept.get("payload")) or _prompt(job),
        delivery=form.delivery(kept.get("delivery")),
        session_target="main" if kept.get("sessionTarget") == "main" else "isolated",
        wake_mode="now",
        created_at=form.iso(job.get("created_at")),
        next_run_at=planned if on and not job.get("run_claim") else None,
        last_run_at=form.iso(job.get("last_run_at")),
        last_status=form.text(job.get("last_status")),
        last_error=form.text(job.get("last_error")),
        running=job["id"] in running or (on and planned is not None and planned <= clock.utc_now()),
    )


def _schedule(job: Mapping[str, Any]) -> Schedule | None:
    """As it was asked for; of a job that the agent made, what Hermes made of it."""
    if (asked := form.schedule(form.mapping(form.mapping(job.get("repeat")).get("roost")).get("schedule"))) is not None:
        return asked
    fields = form.mapping(job.get("schedule"))
    match fields.get("kind"), form.number(fields.get("minutes")), form.iso(fields.get("run_at")):
        case "once", _, datetime() as at:
            return OneTimeSchedule(at.astimezone(UTC))
        case "interval", float() | int() as minutes, _:
            return IntervalSchedule(int(minutes * 60_000))
        case "cron", _, _:
            return CronSchedule(form.text(fields.get("expr")) or "")
        case _:
            return None


def _prompt(job: Mapping[str, Any]) -> TaskPayload | None:
    told = form.text(job.get("prompt"))
    return None if told is None else TaskPayload("agentTurn", told)


def _run(row: Mapping[str, Any]) -> TaskRun:
    started = form.iso(row.get("started_at")) or form.iso(row.get("claimed_at"))
    ended = form.iso(row.get("finished_at"))
    took = None if started is None or ended is None else int((ended - started).total_seconds() * 1000)
    return TaskRun(
        id=str(row.get("id"))[:64],
        status=_STATES.get(str(row.get("status")), "unknown"),
        started_at=started,
        duration_ms=took,
        summary=form.text(row.get("summary")),
        error=form.text(row.get("error")),
    )
