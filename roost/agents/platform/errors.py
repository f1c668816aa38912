"""What can go wrong when an agent asks for its platform token."""

from roost.core.problem import Problem, ProblemKind


class PlatformTokenFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Token generation failed"
