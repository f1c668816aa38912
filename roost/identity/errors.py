"""What the door says when somebody may not enter (contract, Errors: 401 and 403)."""

from roost.core.problem import Problem, ProblemKind


class Unauthorised(Problem):
    """Missing, malformed, expired, revoked, rotated, or of another tenant: the answer does not tell which."""

    kind = ProblemKind.UNAUTHORISED
    message = "Unauthorized"


class MissingCredential(Problem):
    kind = ProblemKind.UNAUTHORISED
    message = "Missing Authorization header"


class MissingUser(Problem):
    """A genuine JWT whose subject does not exist (any more)."""

    kind = ProblemKind.UNAUTHORISED
    message = "Missing userId"


class PermissionDenied(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Permission denied"


class ApiKeyNotFound(Problem):
    """There is none of that name, or it is another tenant's: the answer does not tell which."""

    kind = ProblemKind.MISSING
    message = "API key not found"


class InvalidPermissions(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid permissions"


class ForeignOrigin(Problem):
    """A browser sent the cookie along with a request that another site's page made."""

    kind = ProblemKind.FORBIDDEN
    message = "Cross-site request refused"


class UnknownAgent(Problem):
    kind = ProblemKind.MISSING
    message = "Agent not found"


class TooManyAttempts(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many failed attempts"
