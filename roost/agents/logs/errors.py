"""What can go wrong while somebody reads logs."""

from roost.core.problem import Problem, ProblemKind, TooManyRequests


class TooManyLogReaders(TooManyRequests):
    message = "Too many log streams of this agent are open"


class LogReaderTooSlow(Problem):
    """A reader was so slow that lines went by which it had not taken."""

    kind = ProblemKind.UNAVAILABLE
    message = "Too slow for this log"
