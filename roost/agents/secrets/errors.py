"""What can go wrong with secrets (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidSecret(Problem):
    """A name or a value that cannot be one; the message says why and never repeats a value."""

    kind = ProblemKind.INVALID
    message = "Invalid secret"


class SecretLimitReached(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Secret limit reached"


class DuplicateSecretName(Problem):
    kind = ProblemKind.CONFLICT
    message = "Duplicate secret name"


class ConflictingSecrets(Problem):
    """Two credentials of one provider on one agent."""

    kind = ProblemKind.CONFLICT
    message = "Conflicting secrets"


class SecretAttached(Problem):
    kind = ProblemKind.CONFLICT
    message = "Secret is attached to an agent"


class SecretNotFound(Problem):
    """There is none of that id, or it is another tenant's, or not on this agent: the answer does not tell which."""

    kind = ProblemKind.MISSING
    message = "Secret not found"


class SecretsNotConfigured(Problem):
    """There is no key to seal with that belongs to this deployment."""

    kind = ProblemKind.UNAVAILABLE
    message = "Secrets not configured"


class UnreadableSecret(Problem):
    """The stored value is damaged, was moved between rows, or is sealed with a key that is not here."""

    kind = ProblemKind.FAILED
    message = "A secret could not be opened"
