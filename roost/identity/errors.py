"""Errors of authentication and authorisation (contract, Errors: 401 and 403)."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, Problem, ProblemKind, TooManyRequests
from roost.identity.credentials import BASIC_CHALLENGE


class Unauthorised(Problem):
    """The credential is malformed, expired, revoked or another tenant's; the response does not say which."""

    kind = ProblemKind.UNAUTHORISED
    message = "Unauthorized"


class MissingCredential(Problem):
    kind = ProblemKind.UNAUTHORISED
    message = "Missing Authorization header"


class BasicUnauthorised(Unauthorised):
    """As Unauthorised, for Git: its clients ask for a password at this challenge."""

    challenge = BASIC_CHALLENGE


class MissingBasicCredential(MissingCredential):
    challenge = BASIC_CHALLENGE


class MissingUser(Problem):
    """A valid JWT whose tenant does not exist."""

    kind = ProblemKind.UNAUTHORISED
    message = "Missing userId"


class PermissionDenied(AccessDenied):
    message = "Permission denied"


class ApiKeyNotFound(NotFound):
    """The key is unknown or belongs to another tenant; the response does not say which."""

    message = "API key not found"


class InvalidPermissions(InvalidInput):
    message = "Invalid permissions"


class ForeignOrigin(AccessDenied):
    """A page of another site made the request, and the browser added the cookie."""

    message = "Cross-site request refused"


class UnknownAgent(NotFound):
    message = "Agent not found"


class TooManyAttempts(TooManyRequests):
    message = "Too many failed attempts"
