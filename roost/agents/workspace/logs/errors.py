"""Errors of reading logs."""

from roost.core.problem import ServiceUnavailable, TooManyRequests


class TooManyLogReaders(TooManyRequests):
    message = "Too many log streams of this agent are open"


class LogReaderTooSlow(ServiceUnavailable):
    """Lines were dropped before the reader received them."""

    message = "Too slow for this log"
