"""What can go wrong with wallet signatures, in the words that clients show."""

from roost.core.problem import Kind, Problem


class InvalidSignature(Problem):
    kind = Kind.INVALID
    message = "Invalid signature"


class InvalidAddress(Problem):
    kind = Kind.INVALID
    message = "Invalid address"


class SignatureExists(Problem):
    kind = Kind.CONFLICT
    message = "CID already has a signature"


class SignatureMissing(Problem):
    kind = Kind.MISSING
    message = "Signature not found"
