"""Errors of tasks (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidTaskParameters(Problem):
    """A name, schedule or payload is missing, malformed or not supported by the agent's engine."""

    kind = ProblemKind.INVALID
    message = "Invalid parameters"


class TaskLimitReached(Problem):
    kind = ProblemKind.INVALID
    message = "An agent can have at most 20 tasks"


class TaskNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "Task not found"


class TaskAlreadyRunning(Problem):
    """A task has at most one run at a time."""

    kind = ProblemKind.CONFLICT
    message = "Task is running"


class TasksUnsupported(Problem):
    kind = ProblemKind.INVALID
    message = "This agent's engine has no scheduled tasks"


class TaskCreateFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Failed to create cron job"


class TaskListFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Failed to list cron jobs"
