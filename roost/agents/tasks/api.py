"""Scheduled tasks (contract: Tasks)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.agents.tasks import wire
from roost.agents.tasks.model import RUNS_LIMIT, RUNS_SHOWN
from roost.agents.tasks.service import Tasks
from roost.identity.door import AgentCaller, AgentId
from roost.web.provide import provide

Service = Annotated[Tasks, Depends(provide(Tasks))]
JobId = Annotated[str, Path(alias="jobId")]
router = APIRouter(prefix="/v0/agents/{agentId}/tasks", tags=["tasks"])


@router.get("")
async def list_tasks(
    _: AgentCaller,
    agent_id: AgentId,
    tasks: Service,
    with_disabled: Annotated[bool, Query(alias="includeDisabled")] = True,
) -> wire.TaskList:
    """The agent's tasks, oldest first."""
    return wire.listed(await tasks.list(agent_id, with_disabled=with_disabled))


@router.post("", status_code=201)
async def create_task(_: AgentCaller, agent_id: AgentId, body: wire.TaskBody, tasks: Service) -> wire.TaskDone:
    """Schedule a task: what the agent is told, and when."""
    return wire.done(await tasks.create(agent_id, body.fields()))


@router.get("/{jobId}")
async def show_task(_: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service) -> wire.TaskDetail:
    """One task, with its next and its last run."""
    return wire.TaskDetail(task=wire.record(await tasks.get(agent_id, job_id)))


@router.put("/{jobId}")
async def update_task(
    _: AgentCaller, agent_id: AgentId, job_id: JobId, body: wire.TaskBody, tasks: Service
) -> wire.TaskDone:
    """Change what is given of a task."""
    return wire.done(await tasks.update(agent_id, job_id, body.fields()))


@router.delete("/{jobId}")
async def delete_task(_: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service) -> wire.TaskDeleted:
    """Delete a task with its history."""
    await tasks.delete(agent_id, job_id)
    return wire.TaskDeleted()


@router.post("/{jobId}/run")
async def run_task(_: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service) -> wire.TaskStarted:
    """Run a task now, beside its schedule; answers when it has begun. 409 while it is running."""
    await tasks.run(agent_id, job_id)
    return wire.TaskStarted(job_id=job_id)


@router.post("/{jobId}/toggle")
async def toggle_task(
    _: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service, body: wire.ToggleBody | None = None
) -> wire.TaskDone:
    """Turn a task on or off; without a body, to the other side."""
    return wire.done(await tasks.toggle(agent_id, job_id, body.enabled if body else None))


@router.get("/{jobId}/runs")
async def list_runs(
    _: AgentCaller,
    agent_id: AgentId,
    job_id: JobId,
    tasks: Service,
    limit: Annotated[int, Query(ge=1, le=RUNS_LIMIT)] = RUNS_SHOWN,
) -> wire.RunList:
    """A task's runs, newest first."""
    return wire.history(await tasks.runs(agent_id, job_id, limit))
