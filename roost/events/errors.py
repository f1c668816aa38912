"""Errors of event streams."""

from roost.core.problem import InvalidInput, TooManyRequests


class TooManyEventStreams(TooManyRequests):
    message = "Too many event streams of this credential are open"


class InvalidCursor(InvalidInput):
    """The cursor is no id of an event."""


class UnknownEventType(InvalidInput):
    """The name is neither a type nor a kind of events."""
