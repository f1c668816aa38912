"""Errors of channels (contract, Errors)."""

from roost.core.problem import (
    AccessDenied,
    InvalidInput,
    Problem,
    ResourceConflict,
    ServiceUnavailable,
    TooManyRequests,
)


class UnsupportedChannel(InvalidInput):
    """The name is unknown, or the agent's engine cannot connect this channel."""

    message = "Unsupported channel"


class MissingBotToken(InvalidInput):
    message = "botToken is required (string)"
    field = "botToken"


class MissingAppToken(InvalidInput):
    message = "appToken is required (string)"
    field = "appToken"


class InvalidChannelToken(InvalidInput):
    """The token does not have the platform's format, which the message describes."""

    message = "The token is not valid"


class InvalidAllowFrom(InvalidInput):
    """An id is malformed for the platform, or there are too many ids."""

    message = "allowFrom is not valid"
    field = "allowFrom"


class PairingUnsupported(InvalidInput):
    """The agent's engine needs the code for every approval."""

    message = "This agent's engine approves people by their code only"


class ChannelApprovalFailed(Problem):
    message = "Approval failed"


class TooManyChannelWatches(TooManyRequests):
    message = "Too many watches of the agent's channels"


class ChannelPlanTooSmall(AccessDenied):
    message = "Channels need a paid plan"


class BotTokenInUse(ResourceConflict):
    """Another agent uses the token: two clients with one token would receive each other's messages."""

    message = "This token is used by another agent"


class ChannelTokenUntried(ServiceUnavailable):
    """The platform was not reached, and the present token, which it once accepted, stays."""

    message = "The token was not checked"


class ChannelConfigurationFailed(Problem):
    """The change was rolled back: the previous configuration stays."""

    message = "Configuration failed"


class ChannelRemovalFailed(Problem):
    """The removal was rolled back: the channel stays configured."""

    message = "Removal failed"
