"""Errors of content from clients and the network."""

from roost.core.problem import InvalidInput


class MalformedContent(InvalidInput):
    """Bytes that violate their format; the message gives the reason."""

    message = "Malformed content"


class InvalidCid(MalformedContent):
    message = "Invalid CID"


class InvalidEntryName(MalformedContent):
    """A name that is not allowed in a folder."""

    message = "Invalid file name"
