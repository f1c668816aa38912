"""The fake engine's tasks, which its gateway stores and runs (`scheduler.py`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from roost.drivers.engine import task_json
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
from roost.drivers.engine.gateway_http import send_json

Json = Mapping[str, Any]

_PROBLEMS = {400: EngineTaskRefused, 404: EngineTaskNotFound, 409: EngineTaskRunning}


class FakeTasks(TaskAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, agent: AgentContext) -> Sequence[Task]:
        return [_task(found) for found in task_json.parse_objects((await self._call(agent, "GET /tasks")).get("tasks"))]

    async def get(self, agent: AgentContext, task_id: str) -> Task:
        return _task(await self._call(agent, f"GET /tasks/{task_id}"))

    async def create(self, agent: AgentContext, spec: TaskSpec) -> Task:
        return _task(await self._call(agent, "POST /tasks", task_json.serialize_task(spec)))

    async def update(self, agent: AgentContext, task_id: str, change: TaskChange) -> Task:
        return _task(await self._call(agent, f"PATCH /tasks/{task_id}", task_json.serialize_task(change)))

    async def delete(self, agent: AgentContext, task_id: str) -> None:
        await self._call(agent, f"DELETE /tasks/{task_id}")

    async def run(self, agent: AgentContext, task_id: str) -> None:
        await self._call(agent, f"POST /tasks/{task_id}/run")

    async def runs(self, agent: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        found = await self._call(agent, f"GET /tasks/{task_id}/runs")
        return [_run(run) for run in task_json.parse_objects(found.get("runs"))][:limit]

    async def _call(self, agent: AgentContext, request: str, body: Json | None = None) -> Json:
        expected = (200, *_PROBLEMS)
        status, answer = await send_json(agent.warden.dial, self._port, request, agent.token, body, expected=expected)
        if status in _PROBLEMS:
            raise _PROBLEMS[status]
        return answer


def _task(found: Json) -> Task:
    return Task(
        id=str(found.get("id"))[:64],
        name=task_json.parse_text(found.get("name")) or "",
        description=task_json.parse_text(found.get("description")),
        enabled=found.get("enabled") is True,
        schedule=task_json.parse_schedule(found.get("schedule")),
        payload=task_json.parse_payload(found.get("payload")),
        delivery=task_json.parse_delivery(found.get("delivery")),
        session_target="main" if found.get("sessionTarget") == "main" else "isolated",
        wake_mode="next-heartbeat" if found.get("wakeMode") == "next-heartbeat" else "now",
        created_at=task_json.parse_milliseconds(found.get("createdAt")),
        next_run_at=task_json.parse_milliseconds(found.get("nextRunAt")),
        last_run_at=task_json.parse_milliseconds(found.get("lastRunAt")),
        last_status=task_json.parse_text(found.get("lastStatus")),
        last_error=task_json.parse_text(found.get("lastError")),
        running=found.get("running") is True,
    )


def _run(found: Json) -> TaskRun:
    return TaskRun(
        id=str(found.get("id"))[:64],
        status=task_json.parse_text(found.get("status")) or "unknown",
        started_at=task_json.parse_milliseconds(found.get("startedAt")),
        duration_ms=task_json.parse_integer(found.get("durationMs")),
        summary=task_json.parse_text(found.get("summary")),
        error=task_json.parse_text(found.get("error")),
    )
