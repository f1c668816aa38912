"""Errors of wallet signatures; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class InvalidSignature(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid signature"


class InvalidAddress(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid address"


class SignatureExists(Problem):
    kind = ProblemKind.CONFLICT
    message = "CID already has a signature"


class SignatureMissing(Problem):
    kind = ProblemKind.MISSING
    message = "Signature not found"
