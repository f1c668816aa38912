"""Errors of issuing platform tokens."""

from roost.core.problem import Problem, ProblemKind


class PlatformTokenFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Token generation failed"
