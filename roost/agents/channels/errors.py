"""What can go wrong with channels (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class UnsupportedChannel(Problem):
    """A name that is no channel's, or a channel that the agent's engine cannot connect."""

    kind = ProblemKind.INVALID
    message = "Unsupported channel"


class MissingBotToken(Problem):
    kind = ProblemKind.INVALID
    message = "botToken is required (string)"


class MissingAppToken(Problem):
    kind = ProblemKind.INVALID
    message = "appToken is required (string)"


class InvalidChannelToken(Problem):
    """Not the form of the platform's tokens; the message tells the form."""

    kind = ProblemKind.INVALID
    message = "The token is not valid"


class InvalidAllowFrom(Problem):
    """An id that is none on the platform, or too many of them."""

    kind = ProblemKind.INVALID
    message = "allowFrom is not valid"


class ChannelPlanTooSmall(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Channels need a paid plan"


class BotTokenInUse(Problem):
    """Two programs that ask a platform with the same token take each other's messages away."""

    kind = ProblemKind.CONFLICT
    message = "This token is used by another agent"


class ChannelConfigurationFailed(Problem):
    """Nothing was changed: what was configured before counts."""

    kind = ProblemKind.FAILED
    message = "Configuration failed"


class ChannelRemovalFailed(Problem):
    """Nothing was changed: the channel is configured as before."""

    kind = ProblemKind.FAILED
    message = "Removal failed"
