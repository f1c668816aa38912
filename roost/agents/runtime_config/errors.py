"""What can go wrong with an engine's configuration (contract, Errors)."""

from roost.core.problem import Kind, Problem


class InvalidConfig(Problem):
    """As it is for what cannot be read at all; for what can be and is not valid for the engine, the engine's own
    words follow after a colon.
    """

    kind = Kind.INVALID
    message = "Invalid JSON"


class ConfigTooLarge(Problem):
    kind = Kind.TOO_LARGE
    message = "A configuration has at most 512 KiB"


class NoConfiguration(Problem):
    kind = Kind.CONFLICT
    message = "This agent's engine has no configuration"


class ReadFailed(Problem):
    kind = Kind.FAILED
    message = "Failed to read config"


class WriteFailed(Problem):
    kind = Kind.FAILED
    message = "Failed to write config"


class ValidationFailed(Problem):
    kind = Kind.FAILED
    message = "Validation command failed"
