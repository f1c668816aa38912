"""What can go wrong with channels (contract, Errors)."""

from roost.core.problem import Kind, Problem


class UnsupportedChannel(Problem):
    """A name that is no channel's, or a channel that the agent's engine cannot connect."""

    kind = Kind.INVALID
    message = "Unsupported channel"


class MissingBotToken(Problem):
    kind = Kind.INVALID
    message = "botToken is required (string)"


class MissingAppToken(Problem):
    kind = Kind.INVALID
    message = "appToken is required (string)"


class InvalidToken(Problem):
    """Not the form of the platform's tokens; the message tells the form."""

    kind = Kind.INVALID
    message = "The token is not valid"


class InvalidAllowFrom(Problem):
    """An id that is none on the platform, or too many of them."""

    kind = Kind.INVALID
    message = "allowFrom is not valid"


class PlanTooSmall(Problem):
    kind = Kind.FORBIDDEN
    message = "Channels need a paid plan"


class TokenInUse(Problem):
    """Two programs that ask a platform with the same token take each other's messages away."""

    kind = Kind.CONFLICT
    message = "This token is used by another agent"


class ConfigurationFailed(Problem):
    """Nothing was changed: what was configured before counts."""

    kind = Kind.FAILED
    message = "Configuration failed"


class RemovalFailed(Problem):
    """Nothing was changed: the channel is configured as before."""

    kind = Kind.FAILED
    message = "Removal failed"
