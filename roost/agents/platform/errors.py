"""What can go wrong when an agent asks for its platform token."""

from roost.core.problem import Kind, Problem


class TokenFailed(Problem):
    kind = Kind.FAILED
    message = "Token generation failed"
