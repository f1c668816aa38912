"""Errors of channels (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class UnsupportedChannel(Problem):
    """The name is unknown, or the agent's engine cannot connect this channel."""

    kind = ProblemKind.INVALID
    message = "Unsupported channel"


class MissingBotToken(Problem):
    kind = ProblemKind.INVALID
    message = "botToken is required (string)"


class MissingAppToken(Problem):
    kind = ProblemKind.INVALID
    message = "appToken is required (string)"


class InvalidChannelToken(Problem):
    """The token does not have the platform's format, which the message describes."""

    kind = ProblemKind.INVALID
    message = "The token is not valid"


class InvalidAllowFrom(Problem):
    """An id is malformed for the platform, or there are too many ids."""

    kind = ProblemKind.INVALID
    message = "allowFrom is not valid"


class ChannelPlanTooSmall(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Channels need a paid plan"


class BotTokenInUse(Problem):
    """Another agent uses the token: two clients with one token would receive each other's messages."""

    kind = ProblemKind.CONFLICT
    message = "This token is used by another agent"


class ChannelConfigurationFailed(Problem):
    """The change was rolled back: the previous configuration stays."""

    kind = ProblemKind.FAILED
    message = "Configuration failed"


class ChannelRemovalFailed(Problem):
    """The removal was rolled back: the channel stays configured."""

    kind = ProblemKind.FAILED
    message = "Removal failed"
