"""OpenClaw's tasks: its cron, over RPC. Its own jobs (those with a declaration key) are nobody's tasks.

A recurring job gets no stagger and no delivery unless that is asked for, and a job for one time is kept after it, so
that its outcome can be read.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from roost.drivers.engine import task_json as form
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.tasks import (
    EngineTaskNotFound,
    EngineTaskRefused,
    EngineTaskRunning,
    SessionTarget,
    Task,
    TaskAbility,
    TaskChange,
    TaskRun,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused

Json = Mapping[str, Any]
Call = Callable[[str, Json], Any]

_SECONDS = 15.0
_MOST = 200
_KEPT: Json = {"deleteAfterRun": False}


class OpenClawTasks(TaskAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, inside: AgentContext) -> Sequence[Task]:
        order = {"includeDisabled": True, "limit": _MOST, "sortBy": "updatedAtMs", "sortDir": "asc"}
        async with self._calls(inside) as call:
            found = form.items(form.mapping(await call("cron.list", order)).get("jobs"))
        return sorted((_task(job) for job in found if _is_task(job)), key=lambda task: (str(task.created_at), task.id))

    async def get(self, inside: AgentContext, task_id: str) -> Task:
        async with self._calls(inside) as call:
            return _task(await _found(call, task_id))

    async def create(self, inside: AgentContext, spec: TaskSpec) -> Task:
        async with self._calls(inside) as call:
            return _task(form.mapping(await call("cron.add", {**form.written(spec), **_KEPT})))

    async def update(self, inside: AgentContext, task_id: str, change: TaskChange) -> Task:
        async with self._calls(inside) as call:
            form.check_time_left(form.schedule((await _found(call, task_id)).get("schedule")), change)
            return _task(form.mapping(await call("cron.update", {"id": task_id, "patch": form.written(change)})))

    async def delete(self, inside: AgentContext, task_id: str) -> None:
        async with self._calls(inside) as call:
            await _found(call, task_id)
            await call("cron.remove", {"id": task_id})

    async def run(self, inside: AgentContext, task_id: str) -> None:
        async with self._calls(inside) as call:
            await _found(call, task_id)
            answer = form.mapping(await call("cron.run", {"id": task_id, "mode": "force"}))
        if answer.get("enqueued") is not True:
            raise EngineTaskRunning

    async def runs(self, inside: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        async with self._calls(inside) as call:
            job = await _found(call, task_id)
            answer = form.mapping(await call("cron.runs", {"id": task_id, "limit": limit, "sortDir": "desc"}))
        ended = [_run(entry) for entry in form.items(answer.get("entries"))]
        return [*_under_way(job), *ended][:limit]

    @asynccontextmanager
    async def _calls(self, inside: AgentContext) -> AsyncGenerator[Call]:
        async with OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc:

            async def call(method: str, params: Json) -> Any:
                try:
                    return await rpc.call(method, params, _SECONDS)
                except RpcRefused as refused:
                    raise _meant(refused) from refused

            yield call


async def _found(call: Call, task_id: str) -> Json:
    """The job, if it is a task. Raises NoSuchTask."""
    job = form.mapping(await call("cron.get", {"id": task_id}))
    if not _is_task(job):
        raise EngineTaskNotFound
    return job


def _meant(refused: RpcRefused) -> EngineTaskNotFound | EngineTaskRefused | EngineFailed:
    if refused.details.get("code") == "CRON_JOB_NOT_FOUND":
        return EngineTaskNotFound()
    return EngineTaskRefused(refused.message) if refused.code == "INVALID_REQUEST" else refused


def _is_task(job: Json) -> bool:
    return isinstance(job.get("id"), str) and not job.get("declarationKey")


def _task(job: Json) -> Task:
    if not isinstance(job.get("id"), str):
        raise EngineFailed("The gateway answered with no task")
    state = form.mapping(job.get("state"))
    on = job.get("enabled") is True
    target: SessionTarget = "main" if job.get("sessionTarget") == "main" else "isolated"
    return Task(
        id=job["id"],
        name=form.text(job.get("name")) or job["id"],
        description=form.text(job.get("description")),
        enabled=on,
        schedule=form.schedule(job.get("schedule")),
        payload=form.payload(job.get("payload")),
        delivery=form.delivery(job.get("delivery")),
        session_target=target,
        wake_mode="next-heartbeat" if job.get("wakeMode") == "next-heartbeat" else "now",
        created_at=form.moment(job.get("createdAtMs")),
        next_run_at=form.moment(state.get("nextRunAtMs")) if on else None,
        last_run_at=form.moment(state.get("lastRunAtMs")),
        last_status=form.text(state.get("lastRunStatus")),
        last_error=form.text(state.get("lastError")),
        running=form.number(state.get("runningAtMs")) is not None,
    )


def _run(entry: Json) -> TaskRun:
    duration = form.number(entry.get("durationMs"))
    return TaskRun(
        id=form.text(entry.get("runId")) or str(entry.get("ts", "")),
        status=form.text(entry.get("status")) or "unknown",
        started_at=form.moment(entry.get("runAtMs", entry.get("ts"))),
        duration_ms=None if duration is None else int(duration),
        summary=form.text(entry.get("summary")),
        error=form.text(entry.get("error")),
    )


def _under_way(job: Json) -> Sequence[TaskRun]:
    """The engine writes a run down when it is over."""
    started = form.number(form.mapping(job.get("state")).get("runningAtMs"))
    return (
        []
        if started is None
        else [TaskRun(f"running:{int(started)}", "running", form.moment(started), None, None, None)]
    )
