"""Hermes's tasks: its jobs, over its REST API, with our plugin for its scheduler (`scheduler.py`).

A job lacks some fields of a task, so the whole task is stored in the job's field `repeat`, which Hermes preserves.
Hermes has one kind of session and one way to run a turn: other options are rejected, not ignored.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from roost.core import clock
from roost.core.problem import Problem
from roost.drivers.engine import gateway_json
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
from roost.drivers.engine.gateway_http import GatewayHttpAbility
from roost.drivers.engine.hermes.virtual_environment import PYTHON
from roost.drivers.model.json_access import Json, as_object
from roost.drivers.runtime.contract import HOME

_RUNS = Path(__file__).with_name("runs.py").read_text()
_MAX_TASKS = 200
_CREATION_DELAY = timedelta(days=300)
_STATES = {"completed": "ok", "failed": "error", "claimed": "running", "running": "running"}


class HermesTasks(GatewayHttpAbility, TaskAbility):
    async def list(self, agent: AgentContext) -> Sequence[Task]:
        answer, running = await asyncio.gather(
            self._call(agent, "GET /api/jobs?include_disabled=true"), self._running(agent)
        )
        jobs = gateway_json.parse_objects(answer.get("jobs"))
        tasks = [_task(job, running) for job in jobs if isinstance(job.get("id"), str)]
        return sorted(tasks, key=lambda task: (str(task.created_at), task.id))[:_MAX_TASKS]

    async def get(self, agent: AgentContext, task_id: str) -> Task:
        return _task(await self._job(agent, task_id), await self._running(agent))

    async def create(self, agent: AgentContext, spec: TaskSpec) -> Task:
        """Create a task in two steps, because only a change accepts all fields.

        Between them the job is due in the far future.
        """
        change = _job_change({}, TaskChange(**vars(spec)))
        later = (clock.utc_now() + _CREATION_DELAY).isoformat(timespec="seconds")
        created = await self._call(agent, "POST /api/jobs", {**change, "schedule": later, "repeat": 1})
        task_id = _parse_job(created).get("id")
        try:
            return _task(_parse_job(await self._call(agent, f"PATCH /api/jobs/{task_id}", change)), set())
        except Problem:
            await self._call(agent, f"DELETE /api/jobs/{task_id}")
            raise

    async def update(self, agent: AgentContext, task_id: str, change: TaskChange) -> Task:
        job = await self._job(agent, task_id)
        gateway_json.check_time_left(_schedule(job), change)
        answer = await self._call(agent, f"PATCH /api/jobs/{task_id}", _job_change(job, change))
        if change.enabled:
            answer = await self._call(agent, f"POST /api/jobs/{task_id}/resume")
        return _task(_parse_job(answer), await self._running(agent))

    async def delete(self, agent: AgentContext, task_id: str) -> None:
        await self._call(agent, f"DELETE /api/jobs/{task_id}")

    async def run(self, agent: AgentContext, task_id: str) -> None:
        job = await self._job(agent, task_id)
        stored = {**_stored_task(job), "off": job.get("enabled") is not True}
        if "schedule" in stored:
            await self._call(agent, f"PATCH /api/jobs/{task_id}", {"repeat": _repeat(stored)})
        await self._call(agent, f"POST /api/jobs/{task_id}/run")

    async def runs(self, agent: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        await self._job(agent, task_id)
        return [_run(row) for row in await self._rows(agent, task_id, limit)]

    async def _job(self, agent: AgentContext, task_id: str) -> Json:
        return _parse_job(await self._call(agent, f"GET /api/jobs/{task_id}"))

    async def _call(self, agent: AgentContext, request: str, body: Json | None = None) -> Mapping[str, Any]:
        status, answer = await self._send(agent, request, body, expected=(200, 400, 404))
        if status == 404 or (status == 400 and body is None):  # Hermes answers 400 for a malformed id
            raise EngineTaskNotFound
        if status == 400:
            raise EngineTaskRefused(str(answer.get("error"))[:500])
        return answer

    async def _running(self, agent: AgentContext) -> set[str]:
        return {str(row.get("id")) for row in await self._rows(agent, "*", _MAX_TASKS)}

    async def _rows(self, agent: AgentContext, task_id: str, limit: int) -> Sequence[Mapping[str, Any]]:
        argv = [PYTHON, "-I", "-c", _RUNS, f"{HOME}/.hermes", task_id, str(limit)]
        result = await agent.warden.exec(argv, timeout=10.0, output_limit=2 << 20)
        try:
            return gateway_json.parse_objects(json.loads(result.stdout))
        except (ValueError, RecursionError):
            raise EngineFailed("The history of the task cannot be read") from None


def _job_change(job: Json, change: TaskChange) -> Json:
    """Return the changed fields of a job. Raises EngineTaskRefused for an option that Hermes lacks."""
    _check_options(change)
    stored = {**_stored_task(job), **gateway_json.serialize_task(change)}
    fields: Json = {"name": change.name, "enabled": change.enabled}
    if change.schedule is not None:
        fields["schedule"] = _hermes_schedule(change.schedule)
    if change.payload is not None:
        fields["prompt"] = change.payload.text
    if change.delivery is not None:
        fields["deliver"] = _deliver(change.delivery)
    if "schedule" in stored:
        fields["repeat"] = _repeat({**stored, "off": False})
    return {name: value for name, value in fields.items() if value is not None}


def _check_options(change: TaskChange) -> None:
    payload, delivery, schedule = change.payload, change.delivery, change.schedule
    if payload and (payload.model or payload.thinking or payload.timeout_seconds):
        raise EngineTaskRefused
    if delivery and (delivery.mode == "webhook" or (delivery.mode == "announce" and not delivery.channel)):
        raise EngineTaskRefused
    if isinstance(schedule, CronSchedule) and schedule.stagger_ms:
        raise EngineTaskRefused
    if change.wake_mode == "next-heartbeat":
        raise EngineTaskRefused


def _repeat(stored: Json) -> Json:
    """Return the field `repeat` without a limit: Hermes deletes a job and its outcome after the last time."""
    return {"times": None, "completed": 0, "roost": stored}


def _stored_task(job: Mapping[str, Any]) -> Json:
    return as_object(as_object(job.get("repeat")).get("roost"))


def _hermes_schedule(schedule: Schedule) -> Json:
    match schedule:
        case OneTimeSchedule(at):
            return {"kind": "once", "run_at": at.isoformat(), "display": f"once at {at:%Y-%m-%d %H:%M}"}
        case IntervalSchedule(every_ms):
            return {"kind": "interval", "minutes": every_ms / 60_000, "display": f"every {every_ms / 60_000:g}m"}
        case CronSchedule(expr, tz):
            return {"kind": "cron", "expr": expr, "display": f"{expr} {tz}"}


def _deliver(delivery: TaskDelivery) -> str:
    if delivery.mode == "none":
        return "local"
    return f"{delivery.channel}:{delivery.to}" if delivery.to else str(delivery.channel)


def _parse_job(answer: Mapping[str, Any]) -> Json:
    job = as_object(answer.get("job"))
    if not isinstance(job.get("id"), str):
        raise EngineFailed("The gateway's answer has no job")
    return job


def _task(job: Mapping[str, Any], running: set[str]) -> Task:
    stored = _stored_task(job)
    enabled = job.get("enabled") is True and not stored.get("off")
    planned = gateway_json.parse_iso_time(job.get("next_run_at"))
    return Task(
        id=job["id"],
        name=gateway_json.parse_text(job.get("name")) or job["id"],
        description=gateway_json.parse_text(stored.get("description")),
        enabled=enabled,
        schedule=_schedule(job),
        payload=gateway_json.parse_payload(stored.get("payload")) or _prompt(job),
        delivery=gateway_json.parse_delivery(stored.get("delivery")),
        session_target="main" if stored.get("sessionTarget") == "main" else "isolated",
        wake_mode="now",
        created_at=gateway_json.parse_iso_time(job.get("created_at")),
        next_run_at=planned if enabled and not job.get("run_claim") else None,
        last_run_at=gateway_json.parse_iso_time(job.get("last_run_at")),
        last_status=gateway_json.parse_text(job.get("last_status")),
        last_error=gateway_json.parse_text(job.get("last_error")),
        running=job["id"] in running or (enabled and planned is not None and planned <= clock.utc_now()),
    )


def _schedule(job: Mapping[str, Any]) -> Schedule | None:
    """Return the schedule of the stored task, or Hermes's own of a job that the agent created."""
    if (stored := gateway_json.parse_schedule(_stored_task(job).get("schedule"))) is not None:
        return stored
    fields = as_object(job.get("schedule"))
    match (
        fields.get("kind"),
        gateway_json.parse_number(fields.get("minutes")),
        gateway_json.parse_iso_time(fields.get("run_at")),
    ):
        case "once", _, datetime() as at:
            return OneTimeSchedule(at.astimezone(UTC))
        case "interval", float() | int() as minutes, _:
            return IntervalSchedule(int(minutes * 60_000))
        case "cron", _, _:
            return CronSchedule(gateway_json.parse_text(fields.get("expr")) or "")
        case _:
            return None


def _prompt(job: Mapping[str, Any]) -> TaskPayload | None:
    text = gateway_json.parse_text(job.get("prompt"))
    return None if text is None else TaskPayload("agentTurn", text)


def _run(row: Mapping[str, Any]) -> TaskRun:
    started = gateway_json.parse_iso_time(row.get("started_at")) or gateway_json.parse_iso_time(row.get("claimed_at"))
    ended = gateway_json.parse_iso_time(row.get("finished_at"))
    duration_ms = None if started is None or ended is None else int((ended - started).total_seconds() * 1000)
    return TaskRun(
        id=str(row.get("id"))[:64],
        status=_STATES.get(str(row.get("status")), "unknown"),
        started_at=started,
        duration_ms=duration_ms,
        summary=gateway_json.parse_text(row.get("summary")),
        error=gateway_json.parse_text(row.get("error")),
    )
