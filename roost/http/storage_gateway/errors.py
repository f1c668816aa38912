"""Errors of storage gateways, with the texts and ids that clients parse."""

from roost.core.problem import InvalidInput, NotFound, Problem, ProblemKind


class InvalidGatewayUrl(InvalidInput):
    message = "ERR_ID:00004 - Invalid URL"


class FormatNotServed(InvalidInput):
    message = "ERR_ID:00004 - format is raw, car or tar"


class ContentNotServed(NotFound):
    """The content is missing, private, or another tenant's; the response does not say which."""

    message = "ERR_ID:00006 - The content is not pinned to the account of this gateway's owner"


class GatewayAccessDenied(Problem):
    kind = ProblemKind.UNAUTHORISED
    message = "ERR_ID:00024 - This gateway's access controls do not allow the request"


class UnknownGateway(NotFound):
    message = "ERR_ID:00004 - There is no such gateway"


class InvalidRedirectsFile(Problem):
    """The `_redirects` file of a site cannot be applied."""

    message = "The _redirects file is invalid"


class PathNotFound(NotFound):
    """The root is served, but nothing is at the path below it."""

    message = "ERR_ID:00006 - There is nothing at this path"


class UnreadablePath(NotFound):
    """The path leads to content that is not served here, or is malformed."""

    message = PathNotFound.message
