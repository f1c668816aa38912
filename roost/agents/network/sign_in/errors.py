"""Errors of one-time sign-in links."""

from roost.core.problem import InvalidInput, Problem, ProblemKind


class InvalidSignInLink(Problem):
    """The code is unknown, used, expired, of another agent, or older than the gateway token."""

    kind = ProblemKind.UNAUTHORISED
    message = "This sign-in link was used or has expired; run `roost open` again"


class NotABrowser(InvalidInput):
    """The request does not use the link up."""

    message = "Open this sign-in link in a browser"
