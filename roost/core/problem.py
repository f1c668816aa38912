"""Errors of the domain; only `web/errors.py` converts their kinds to HTTP statuses.

Problem: a failure of this server
 +- one subclass for each other kind
     +- one subclass for each message of the contract, in the slice that raises it
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

_RESTART_SECONDS = 5.0


class ProblemKind(StrEnum):
    INVALID = "invalid"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    CONFLICT = "conflict"
    PRECONDITION = "precondition"
    TOO_LARGE = "too_large"
    LIMITED = "limited"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"
    TIMED_OUT = "timed_out"

    @property
    def is_temporary(self) -> bool:
        """Whether the same attempt may succeed a while later."""
        return self in {ProblemKind.UNAVAILABLE, ProblemKind.LIMITED}


class Problem(Exception):  # noqa: N818 - the term of RFC 9457
    """An expected failure with a message for the caller.

    `extra` is merged into the error body (in the contract, a failed create has the agent in its 500 response);
    `retry_after` is in seconds; `detail` explains a message that the contract fixes, in a header; `field` is the path
    of the field at fault.
    """

    kind: ClassVar[ProblemKind] = ProblemKind.FAILED
    message: str = "Internal error"
    field: str | None = None
    challenge: ClassVar[str] = "Bearer"
    """How to authenticate, if that is missing (RFC 9110, 11.6.1)."""

    def __init__(
        self,
        message: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        detail: str | None = None,
        field: str | None = None,
    ) -> None:
        self.message = message or type(self).message
        self.field = field or type(self).field
        self.extra = dict(extra or {})
        self.retry_after = retry_after
        self.detail = detail
        super().__init__(self.message)


@cache
def error_code(problem: type[Problem]) -> str:
    """Return the stable name by which clients tell an error: its class in snake_case, unique in the package."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", problem.__name__).lower()


class InvalidInput(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid request"


class AccessDenied(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Permission denied"


class NotFound(Problem):
    kind = ProblemKind.MISSING
    message = "Not found"


class ResourceConflict(Problem):
    kind = ProblemKind.CONFLICT
    message = "Conflict"


class PreconditionFailed(Problem):
    """A condition of the request does not hold (RFC 9110, 13.1)."""

    kind = ProblemKind.PRECONDITION
    message = "Precondition failed"


class PayloadTooLarge(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "Request body too large"


class TooManyRequests(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many requests"


class ServiceUnavailable(Problem):
    kind = ProblemKind.UNAVAILABLE
    message = "Service unavailable"


class DependencyAway(ServiceUnavailable):
    """A part that the whole server depends on is away; the part itself says so in the log (`Outage`)."""


class ServerStopping(ServiceUnavailable):
    """The request would outlast this server; the next one can answer it."""

    message = "The server is stopping"

    def __init__(self) -> None:
        super().__init__(retry_after=_RESTART_SECONDS)
