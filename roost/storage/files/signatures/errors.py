"""Errors of wallet signatures; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound, ResourceConflict


class InvalidSignature(InvalidInput):
    message = "Invalid signature"


class SignatureExists(ResourceConflict):
    message = "CID already has a signature"


class SignatureMissing(NotFound):
    message = "Signature not found"
