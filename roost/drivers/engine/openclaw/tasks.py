"""OpenClaw's tasks: its cron jobs, over RPC, without the engine's own, which have a declaration key.

A recurring job has a stagger or a delivery only if the task has one. A one-time job is kept after its run, so that its
outcome can be read.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
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
from roost.drivers.model.json_access import Json, as_object

Call = Callable[[str, Json], Any]

_TIMEOUT_SECONDS = 15.0
_MAX_TASKS = 200
_KEEP_AFTER_RUN: Json = {"deleteAfterRun": False}


class OpenClawTasks(TaskAbility):
    async def list(self, agent: AgentContext) -> Sequence[Task]:
        params = {"includeDisabled": True, "limit": _MAX_TASKS, "sortBy": "updatedAtMs", "sortDir": "asc"}
        async with self._calls(agent) as call:
            found = gateway_json.parse_objects(as_object(await call("cron.list", params)).get("jobs"))
        tasks = [gateway_json.parse_task(job) for job in found if _is_task(job)]
        return sorted(tasks, key=lambda task: (str(task.created_at), task.id))

    async def get(self, agent: AgentContext, task_id: str) -> Task:
        async with self._calls(agent) as call:
            return gateway_json.parse_task(await _get_job(call, task_id))

    async def create(self, agent: AgentContext, spec: TaskSpec) -> Task:
        async with self._calls(agent) as call:
            return gateway_json.parse_task(
                as_object(await call("cron.add", {**gateway_json.serialize_task(spec), **_KEEP_AFTER_RUN}))
            )

    async def update(self, agent: AgentContext, task_id: str, change: TaskChange) -> Task:
        async with self._calls(agent) as call:
            schedule = gateway_json.parse_schedule((await _get_job(call, task_id)).get("schedule"))
            gateway_json.check_time_left(schedule, change)
            patch = {"id": task_id, "patch": gateway_json.serialize_task(change)}
            return gateway_json.parse_task(as_object(await call("cron.update", patch)))

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
        ended = [gateway_json.parse_run(entry) for entry in gateway_json.parse_objects(answer.get("entries"))]
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


def _current_run(job: Json) -> Sequence[TaskRun]:
    """Return the current run, which is not in the engine's list of finished runs."""
    started = gateway_json.parse_integer(as_object(job.get("state")).get("runningAtMs"))
    if started is None:
        return []
    return [TaskRun(f"running:{started}", "running", gateway_json.parse_milliseconds(started), None, None, None)]
