"""OpenClaw's tasks: its cron jobs, over RPC, without the engine's own, which have a declaration key.

A recurring job has a stagger or a delivery only if the task has one. A one-time job is kept after its run, so that its
outcome can be read.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from roost.drivers.engine import gateway_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.tasks import (
    EngineTaskNotFound,
    EngineTaskRefused,
    EngineTaskRunning,
    Task,
    TaskAbility,
    TaskChange,
    TaskRun,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused
from roost.drivers.model.json_access import as_object

Json = Mapping[str, Any]
Call = Callable[[str, Json], Any]

_TIMEOUT_SECONDS = 15.0
_MAX_TASKS = 200
_KEEP_AFTER_RUN: Json = {"deleteAfterRun": False}


class OpenClawTasks(TaskAbility):
    async def list(self, agent: AgentContext) -> Sequence[Task]:
        params = {"includeDisabled": True, "limit": _MAX_TASKS, "sortBy": "updatedAtMs", "sortDir": "asc"}
        async with self._calls(agent) as call:
            found = gateway_json.parse_objects(as_object(await call("cron.list", params)).get("jobs"))
        return sorted((_task(job) for job in found if _is_task(job)), key=lambda task: (str(task.created_at), task.id))

    async def get(self, agent: AgentContext, task_id: str) -> Task:
        async with self._calls(agent) as call:
            return _task(await _get_job(call, task_id))

    async def create(self, agent: AgentContext, spec: TaskSpec) -> Task:
        async with self._calls(agent) as call:
            return _task(as_object(await call("cron.add", {**gateway_json.serialize_task(spec), **_KEEP_AFTER_RUN})))

    async def update(self, agent: AgentContext, task_id: str, change: TaskChange) -> Task:
        async with self._calls(agent) as call:
            gateway_json.check_time_left(
                gateway_json.parse_schedule((await _get_job(call, task_id)).get("schedule")), change
            )
            return _task(
                as_object(await call("cron.update", {"id": task_id, "patch": gateway_json.serialize_task(change)}))
            )

    async def delete(self, agent: AgentContext, task_id: str) -> None:
        async with self._calls(agent) as call:
            await _get_job(call, task_id)
            await call("cron.remove", {"id": task_id})

    async def run(self, agent: AgentContext, task_id: str) -> None:
        async with self._calls(agent) as call:
            await _get_job(call, task_id)
            answer = as_object(await call("cron.run", {"id": task_id, "mode": "force"}))
        if answer.get("enqueued") is not True:
            raise EngineTaskRunning

    async def runs(self, agent: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        async with self._calls(agent) as call:
            job = await _get_job(call, task_id)
            answer = as_object(await call("cron.runs", {"id": task_id, "limit": limit, "sortDir": "desc"}))
        ended = [_run(entry) for entry in gateway_json.parse_objects(answer.get("entries"))]
        return [*_current_run(job), *ended][:limit]

    @asynccontextmanager
    async def _calls(self, agent: AgentContext) -> AsyncGenerator[Call]:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:

            async def call(method: str, params: Json) -> Any:
                try:
                    return await rpc.call(method, params, _TIMEOUT_SECONDS)
                except RpcRefused as refused:
                    raise _translate(refused) from refused

            yield call


async def _get_job(call: Call, task_id: str) -> Json:
    """Return the job of a task. Raises EngineTaskNotFound."""
    job = as_object(await call("cron.get", {"id": task_id}))
    if not _is_task(job):
        raise EngineTaskNotFound
    return job


def _translate(refused: RpcRefused) -> EngineTaskNotFound | EngineTaskRefused | EngineFailed:
    if refused.details.get("code") == "CRON_JOB_NOT_FOUND":
        return EngineTaskNotFound()
    return EngineTaskRefused(refused.message) if refused.code == "INVALID_REQUEST" else refused


def _is_task(job: Json) -> bool:
    return isinstance(job.get("id"), str) and not job.get("declarationKey")


def _task(job: Json) -> Task:
    if not isinstance(job.get("id"), str):
        raise EngineFailed("The gateway's answer has no task")
    state = as_object(job.get("state"))
    enabled = job.get("enabled") is True
    return Task(
        id=job["id"],
        name=gateway_json.parse_text(job.get("name")) or job["id"],
        description=gateway_json.parse_text(job.get("description")),
        enabled=enabled,
        schedule=gateway_json.parse_schedule(job.get("schedule")),
        payload=gateway_json.parse_payload(job.get("payload")),
        delivery=gateway_json.parse_delivery(job.get("delivery")),
        session_target="main" if job.get("sessionTarget") == "main" else "isolated",
        wake_mode="next-heartbeat" if job.get("wakeMode") == "next-heartbeat" else "now",
        created_at=gateway_json.parse_milliseconds(job.get("createdAtMs")),
        next_run_at=gateway_json.parse_milliseconds(state.get("nextRunAtMs")) if enabled else None,
        last_run_at=gateway_json.parse_milliseconds(state.get("lastRunAtMs")),
        last_status=gateway_json.parse_text(state.get("lastRunStatus")),
        last_error=gateway_json.parse_text(state.get("lastError")),
        running=gateway_json.parse_number(state.get("runningAtMs")) is not None,
    )


def _run(entry: Json) -> TaskRun:
    return TaskRun(
        id=gateway_json.parse_text(entry.get("runId")) or str(entry.get("ts", "")),
        status=gateway_json.parse_text(entry.get("status")) or "unknown",
        started_at=gateway_json.parse_milliseconds(entry.get("runAtMs", entry.get("ts"))),
        duration_ms=gateway_json.parse_integer(entry.get("durationMs")),
        summary=gateway_json.parse_text(entry.get("summary")),
        error=gateway_json.parse_text(entry.get("error")),
    )


def _current_run(job: Json) -> Sequence[TaskRun]:
    """Return the current run, which is not in the engine's list of finished runs."""
    started = gateway_json.parse_integer(as_object(job.get("state")).get("runningAtMs"))
    if started is None:
        return []
    return [TaskRun(f"running:{started}", "running", gateway_json.parse_milliseconds(started), None, None, None)]
