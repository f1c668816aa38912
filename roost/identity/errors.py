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


class InvalidLoginCode(Problem):
    """The code is unknown, used or expired, or its key was revoked."""

    kind = ProblemKind.UNAUTHORISED
    message = "This sign-in link was used or has expired; run `roost dashboard` for a new one"


class InvalidCsrfToken(AccessDenied):
    message = "The X-CSRF-Token header is missing or not that of this session"


class RoleTooLow(AccessDenied):
    message = "Permission denied: your role does not allow it"


class KeyOpensNoSession(AccessDenied):
    """The key has a maximum number of requests, or no scope of the role."""

    message = "Permission denied: this key cannot sign a browser in"
