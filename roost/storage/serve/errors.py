"""Why a gateway does not serve, in the words and with the ids that its clients know."""

from roost.core.problem import Problem, ProblemKind


class InvalidGatewayUrl(Problem):
    kind = ProblemKind.INVALID
    message = "ERR_ID:00004 - Invalid URL"


class ContentNotServed(Problem):
    """Not here, not public, or not this gateway's: nobody is told which."""

    kind = ProblemKind.MISSING
    message = "ERR_ID:00006 - The content is not pinned to the account of this gateway's owner"


class GatewayAccessDenied(Problem):
    kind = ProblemKind.UNAUTHORISED
    message = "ERR_ID:00024 - This gateway's access controls do not allow the request"


class UnknownGateway(Problem):
    kind = ProblemKind.MISSING
    message = "ERR_ID:00004 - There is no such gateway"


class PathNotFound(Problem):
    """The root is served, the path below it leads nowhere."""

    kind = ProblemKind.MISSING
    message = "ERR_ID:00006 - There is nothing at this path"
