"""Scheduled tasks (contract: Tasks)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.agents.setup.tasks import schemas
from roost.agents.setup.tasks.model import RUNS_DEFAULT, RUNS_LIMIT, InvalidTaskParameters
from roost.agents.setup.tasks.service import TaskService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.errors import refuse_body_with
from roost.web.service_registry import provide_service

Service = Annotated[TaskService, Depends(provide_service(TaskService))]
JobId = Annotated[str, Path(alias="jobId")]
router = APIRouter(prefix="/v0/agents/{agentId}/tasks", tags=["tasks"])


@router.get("")
async def list_tasks(
    _: AgentCaller,
    agent_id: AgentId,
    tasks: Service,
    with_disabled: Annotated[bool, Query(alias="includeDisabled")] = True,
) -> schemas.TaskList:
    """List the agent's tasks, oldest first."""
    found = [schemas.task_record(task) for task in await tasks.list(agent_id, with_disabled=with_disabled)]
    return schemas.TaskList(tasks=found, jobs=found)


@router.post("", status_code=201)
@refuse_body_with(InvalidTaskParameters, "name", "schedule", "payload")
async def create_task(
    _: AgentCaller, agent_id: AgentId, body: schemas.CreateTaskRequest, tasks: Service
) -> schemas.TaskChangeResponse:
    """Schedule a task: a prompt for the agent, and when to send it."""
    return schemas.task_change_response(await tasks.create(agent_id, body.to_fields()))


@router.get("/{jobId}")
async def show_task(_: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service) -> schemas.TaskDetail:
    """Show one task with its next and its last run."""
    return schemas.TaskDetail(task=schemas.task_record(await tasks.get(agent_id, job_id)))


@router.put("/{jobId}")
@refuse_body_with(InvalidTaskParameters)
async def update_task(
    _: AgentCaller, agent_id: AgentId, job_id: JobId, body: schemas.TaskRequest, tasks: Service
) -> schemas.TaskChangeResponse:
    """Change the given fields of a task."""
    return schemas.task_change_response(await tasks.update(agent_id, job_id, body.to_fields()))


@router.delete("/{jobId}")
async def delete_task(_: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service) -> schemas.DeleteTaskResponse:
    """Delete a task with its history."""
    await tasks.delete(agent_id, job_id)
    return schemas.DeleteTaskResponse()


@router.post("/{jobId}/run")
async def run_task(_: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service) -> schemas.RunTaskResponse:
    """Run a task now, in addition to its schedule; respond once it has started. 409 while it is running."""
    await tasks.run(agent_id, job_id)
    return schemas.RunTaskResponse(job_id=job_id)


@router.post("/{jobId}/toggle")
@refuse_body_with(InvalidTaskParameters)
async def toggle_task(
    _: AgentCaller, agent_id: AgentId, job_id: JobId, tasks: Service, body: schemas.ToggleTaskRequest | None = None
) -> schemas.TaskChangeResponse:
    """Enable or disable a task; without a body, toggle it."""
    return schemas.task_change_response(await tasks.toggle(agent_id, job_id, body.enabled if body else None))


@router.get("/{jobId}/runs")
async def list_runs(
    _: AgentCaller,
    agent_id: AgentId,
    job_id: JobId,
    tasks: Service,
    limit: Annotated[int, Query(ge=1, le=RUNS_LIMIT)] = RUNS_DEFAULT,
) -> schemas.TaskRunList:
    """List a task's runs, newest first."""
    runs = [schemas.TaskRunRecord(**vars(run)) for run in await tasks.list_runs(agent_id, job_id, limit)]
    return schemas.TaskRunList(runs=runs, entries=runs)
