"""The fake engine's tasks, kept by its gateway (`fake_scheduler.py`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from roost.drivers.engine import http
from roost.drivers.engine import task_json as form
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

Json = Mapping[str, Any]

_PROBLEMS = {400: EngineTaskRefused, 404: EngineTaskNotFound, 409: EngineTaskRunning}


class FakeTasks(TaskAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, inside: AgentContext) -> Sequence[Task]:
        return [_task(found) for found in form.items((await self._ask(inside, "GET /tasks")).get("tasks"))]

    async def get(self, inside: AgentContext, task_id: str) -> Task:
        return _task(await self._ask(inside, f"GET /tasks/{task_id}"))

    async def create(self, inside: AgentContext, spec: TaskSpec) -> Task:
        return _task(await self._ask(inside, "POST /tasks", form.written(spec)))

    async def update(self, inside: AgentContext, task_id: str, change: TaskChange) -> Task:
        return _task(await self._ask(inside, f"PATCH /tasks/{task_id}", form.written(change)))

    async def delete(self, inside: AgentContext, task_id: str) -> None:
        await self._ask(inside, f"DELETE /tasks/{task_id}")

    async def run(self, inside: AgentContext, task_id: str) -> None:
        await self._ask(inside, f"POST /tasks/{task_id}/run")

    async def runs(self, inside: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        found = await self._ask(inside, f"GET /tasks/{task_id}/runs")
        return [_run(run) for run in form.items(found.get("runs"))][:limit]

    async def _ask(self, inside: AgentContext, order: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        status, answer = await http.send_json(inside.warden.dial, self._port, order, headers, body)
        if status in _PROBLEMS:
            raise _PROBLEMS[status]
        if status != 200:
            raise EngineFailed(f"The gateway answered {status}")
        return answer


def _task(found: Json) -> Task:
    return Task(
        id=str(found.get("id"))[:64],
        name=form.text(found.get("name")) or "",
        description=form.text(found.get("description")),
        enabled=found.get("enabled") is True,
        schedule=form.schedule(found.get("schedule")),
        payload=form.payload(found.get("payload")),
        delivery=form.delivery(found.get("delivery")),
        session_target="main" if found.get("sessionTarget") == "main" else "isolated",
        wake_mode="next-heartbeat" if found.get("wakeMode") == "next-heartbeat" else "now",
        created_at=form.moment(found.get("createdAt")),
        next_run_at=form.moment(found.get("nextRunAt")),
        last_run_at=form.moment(found.get("lastRunAt")),
        last_status=form.text(found.get("lastStatus")),
        last_error=form.text(found.get("lastError")),
        running=found.get("running") is True,
    )


def _run(found: Json) -> TaskRun:
    duration = form.number(found.get("durationMs"))
    return TaskRun(
        id=str(found.get("id"))[:64],
        status=form.text(found.get("status")) or "unknown",
        started_at=form.moment(found.get("startedAt")),
        duration_ms=None if duration is None else int(duration),
        summary=form.text(found.get("summary")),
        error=form.text(found.get("error")),
    )
