"""Errors of issuing platform tokens."""

from roost.core.problem import Problem


class PlatformTokenFailed(Problem):
    message = "Token generation failed"
