"""Errors of browser sessions."""

from roost.core.problem import AccessDenied, Problem, ProblemKind


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
