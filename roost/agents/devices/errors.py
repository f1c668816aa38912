"""What can go wrong with devices (contract, Errors); an engine that fails is `EngineFailed`."""

from roost.core.problem import Problem, ProblemKind


class DevicesUnsupported(Problem):
    """The agent's engine pairs no devices, so there is no such request."""

    kind = ProblemKind.MISSING
    message = "This agent's engine has no device pairing"
