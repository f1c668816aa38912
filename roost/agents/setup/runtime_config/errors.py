"""Errors of an engine's configuration (contract, Errors)."""

from roost.core.problem import InvalidInput, PayloadTooLarge, Problem, ResourceConflict


class InvalidConfig(InvalidInput):
    """The configuration is malformed, or the engine rejects it; then `detail` is its own message."""

    message = "Invalid JSON"


class ConfigTooLarge(PayloadTooLarge):
    message = "A configuration can have at most 512 KiB"


class ConfigUnsupported(ResourceConflict):
    message = "This agent's engine has no configuration"


class ConfigReadFailed(Problem):
    message = "Failed to read config"


class ConfigWriteFailed(Problem):
    message = "Failed to write config"


class ConfigValidationFailed(Problem):
    message = "Validation command failed"
