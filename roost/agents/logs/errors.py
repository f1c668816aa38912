"""Errors of reading logs."""

from roost.core.problem import Problem, ProblemKind, TooManyRequests


class TooManyLogReaders(TooManyRequests):
    message = "Too many log streams of this agent are open"


class LogReaderTooSlow(Problem):
    """Lines were dropped before the reader received them."""

    kind = ProblemKind.UNAVAILABLE
    message = "Too slow for this log"
