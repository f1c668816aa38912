"""Errors of an engine's configuration (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidConfig(Problem):
    """The configuration is malformed, or the engine rejects it; then its own message follows after a colon."""

    kind = ProblemKind.INVALID
    message = "Invalid JSON"


class ConfigTooLarge(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "A configuration can have at most 512 KiB"


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
