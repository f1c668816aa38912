"""Why a gateway does not serve, in the words and with the ids that its clients know."""

from roost.core.problem import Kind, Problem


class InvalidUrl(Problem):
    kind = Kind.INVALID
    message = "ERR_ID:00004 - Invalid URL"


class NotPinned(Problem):
    """Not here, not public, or not this gateway's: nobody is told which."""

    kind = Kind.MISSING
    message = "ERR_ID:00006 - The content is not pinned to the account of this gateway's owner"


class AccessDenied(Problem):
    kind = Kind.UNAUTHORISED
    message = "ERR_ID:00024 - This gateway's access controls do not allow the request"


class NoSuchGateway(Problem):
    kind = Kind.MISSING
    message = "ERR_ID:00004 - There is no such gateway"


class NotThere(Problem):
    """The root is served, the path below it leads nowhere."""

    kind = Kind.MISSING
    message = "ERR_ID:00006 - There is nothing at this path"
