"""What can go wrong with an operation."""

from roost.core.problem import NotFound, Problem, ProblemKind


class OperationNotFound(NotFound):
    """There is no such operation, or it finished so long ago that it was swept."""

    message = "Operation not found"


class LeaseLost(Problem):
    """Another attempt at the operation has begun, or it was given back: this one must not write any more."""

    kind = ProblemKind.CONFLICT
    message = "The operation is no longer held by this process"
