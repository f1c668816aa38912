"""Errors of authentication and authorisation (contract, Errors: 401 and 403)."""

from roost.core.problem import Problem, ProblemKind


class Unauthorised(Problem):
    """The credential is malformed, expired, revoked or another tenant's; the response does not say which."""

    kind = ProblemKind.UNAUTHORISED
    message = "Unauthorized"


class MissingCredential(Problem):
    kind = ProblemKind.UNAUTHORISED
    message = "Missing Authorization header"


class MissingUser(Problem):
    """A valid JWT whose tenant does not exist."""

    kind = ProblemKind.UNAUTHORISED
    message = "Missing userId"


class PermissionDenied(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Permission denied"


class ApiKeyNotFound(Problem):
    """The key is unknown or belongs to another tenant; the response does not say which."""

    kind = ProblemKind.MISSING
    message = "API key not found"


class InvalidPermissions(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid permissions"


class ForeignOrigin(Problem):
    """A page of another site made the request, and the browser added the cookie."""

    kind = ProblemKind.FORBIDDEN
    message = "Cross-site request refused"


class UnknownAgent(Problem):
    kind = ProblemKind.MISSING
    message = "Agent not found"


class TooManyAttempts(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many failed attempts"
