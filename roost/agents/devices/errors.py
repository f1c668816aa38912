"""What can go wrong with devices (contract, Errors); an engine that fails is `EngineFailed`."""

from roost.core.problem import Kind, Problem


class NoDevices(Problem):
    """The agent's engine pairs no devices, so there is no such request."""

    kind = Kind.MISSING
    message = "This agent's engine has no device pairing"
