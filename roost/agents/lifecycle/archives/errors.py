"""Errors of archives, which the contract does not have."""

from roost.core.problem import InvalidInput, PayloadTooLarge, ResourceConflict


class InvalidArchive(InvalidInput):
    """The bytes are no archive of an agent; the message gives the reason."""

    message = "Invalid archive"


class ArchiveTooLarge(PayloadTooLarge):
    message = "The archive is larger than an agent's disk"


class ArchiveHoldsSecret(ResourceConflict):
    """A value of a secret would leave with the file; the message names the place and the secret."""

    message = "The archive would hold the value of a secret"
