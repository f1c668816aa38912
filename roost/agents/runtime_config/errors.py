"""What can go wrong with an engine's configuration (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidConfig(Problem):
    """As it is for what cannot be read at all; for what can be and is not valid for the engine, the engine's own
    words follow after a colon.
    """

    kind = ProblemKind.INVALID
    message = "Invalid JSON"


class ConfigTooLarge(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "A configuration has at most 512 KiB"


class ConfigUnsupported(Problem):
    kind = ProblemKind.CONFLICT
    message = "This agent's engine has no configuration"


class ConfigReadFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Failed to read config"


class ConfigWriteFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Failed to write config"


class ConfigValidationFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Validation command failed"
