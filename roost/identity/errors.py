"""What the door says when somebody may not enter (contract, Errors: 401 and 403)."""

from roost.core.problem import Kind, Problem


class Unauthorised(Problem):
    """Missing, malformed, expired, revoked, rotated, or of another tenant: the answer does not tell which."""

    kind = Kind.UNAUTHORISED
    message = "Unauthorized"


class MissingCredential(Problem):
    kind = Kind.UNAUTHORISED
    message = "Missing Authorization header"


class MissingUser(Problem):
    """A genuine JWT whose subject does not exist (any more)."""

    kind = Kind.UNAUTHORISED
    message = "Missing userId"


class PermissionDenied(Problem):
    kind = Kind.FORBIDDEN
    message = "Permission denied"


class KeyMissing(Problem):
    """There is none of that name, or it is another tenant's: the answer does not tell which."""

    kind = Kind.MISSING
    message = "API key not found"


class InvalidPermissions(Problem):
    kind = Kind.INVALID
    message = "Invalid permissions"


class ForeignOrigin(Problem):
    """A browser sent the cookie along with a request that another site's page made."""

    kind = Kind.FORBIDDEN
    message = "Cross-site request refused"


class UnknownAgent(Problem):
    kind = Kind.MISSING
    message = "Agent not found"


class TooManyAttempts(Problem):
    kind = Kind.LIMITED
    message = "Too many failed attempts"
