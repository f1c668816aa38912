"""What can go wrong with tasks (contract, Errors)."""

from roost.core.problem import Kind, Problem


class InvalidParameters(Problem):
    """Name, schedule or payload are missing or malformed, or the agent's engine has nothing for what they ask."""

    kind = Kind.INVALID
    message = "Invalid parameters"


class TaskLimitReached(Problem):
    kind = Kind.INVALID
    message = "An agent can have at most 20 tasks"


class UnknownTask(Problem):
    kind = Kind.MISSING
    message = "Task not found"


class TaskIsRunning(Problem):
    """One run of a task at a time."""

    kind = Kind.CONFLICT
    message = "Task is running"


class NoTasks(Problem):
    kind = Kind.INVALID
    message = "This agent's engine has no scheduled tasks"


class CreateFailed(Problem):
    kind = Kind.FAILED
    message = "Failed to create cron job"


class ListFailed(Problem):
    kind = Kind.FAILED
    message = "Failed to list cron jobs"
