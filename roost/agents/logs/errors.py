"""What can go wrong while somebody reads logs."""

from roost.core.problem import Kind, Limited, Problem


class TooManyReaders(Limited):
    message = "Too many log streams of this agent are open"


class Lagging(Problem):
    """A reader was so slow that lines went by which it had not taken."""

    kind = Kind.UNAVAILABLE
    message = "Too slow for this log"
