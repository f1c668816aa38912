"""Errors of devices (contract, Errors); failures of an engine are `EngineFailed`."""

from roost.core.problem import Problem, ProblemKind


class DevicesUnsupported(Problem):
    """The agent's engine has no device pairing, so it has no requests."""

    kind = ProblemKind.MISSING
    message = "This agent's engine has no device pairing"
