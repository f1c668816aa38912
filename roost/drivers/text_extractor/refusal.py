"""Reasons to refuse a document, which travel from the sandbox to the server."""

from enum import StrEnum


class RefusalReason(StrEnum):
    UNSUPPORTED = "unsupported"
    DAMAGED = "damaged"
    ENCRYPTED = "encrypted"
    DEPTH = "depth"
    TEXT_SIZE = "text_size"
    UNPACKED_SIZE = "unpacked_size"
    MEMORY = "memory"


class DocumentRefused(Exception):  # noqa: N818 - an answer, not a failure
    def __init__(self, reason: RefusalReason) -> None:
        self.reason = reason
        super().__init__(reason)
