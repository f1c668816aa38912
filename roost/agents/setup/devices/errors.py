"""Errors of devices (contract, Errors); failures of an engine are `EngineFailed`."""

from roost.core.problem import NotFound


class DevicesUnsupported(NotFound):
    """The agent's engine has no device pairing, so it has no requests."""

    message = "This agent's engine has no device pairing"
