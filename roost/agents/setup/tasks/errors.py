"""Errors of tasks (contract, Errors)."""

from roost.core.problem import InvalidInput, NotFound, Problem, ResourceConflict


class InvalidTaskParameters(InvalidInput):
    """A name, schedule or payload is missing, malformed or not supported by the agent's engine."""

    message = "Invalid parameters"


class TaskLimitReached(InvalidInput):
    message = "An agent can have at most 20 tasks"


class TaskNotFound(NotFound):
    message = "Task not found"


class TaskAlreadyRunning(ResourceConflict):
    """A task has at most one run at a time."""

    message = "Task is running"


class TasksUnsupported(InvalidInput):
    message = "This agent's engine has no scheduled tasks"


class TaskCreateFailed(Problem):
    message = "Failed to create cron job"


class TaskListFailed(Problem):
    message = "Failed to list cron jobs"
