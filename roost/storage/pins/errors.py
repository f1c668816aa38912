"""Errors of pins by CID; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound, ServiceUnavailable, TooManyRequests


class PinNotFound(NotFound):
    message = "Pin request not found"


class TooManyPins(TooManyRequests):
    message = "Too many pin requests are waiting"


class TooManyHostNodes(InvalidInput):
    message = "Too many host nodes"


class ContentNotFoundYet(ServiceUnavailable):
    """No source has the content; the retrieval is retried."""

    message = "The content was not found yet"
