"""Errors of secrets (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidSecret(Problem):
    """The name or the value is invalid; the message gives the reason and never the value."""

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
    """Unknown id, secret of another tenant, or not attached; the response does not say which."""

    kind = ProblemKind.MISSING
    message = "Secret not found"


class SecretsNotConfigured(Problem):
    """The key-encryption key is missing or belongs to another deployment."""

    kind = ProblemKind.UNAVAILABLE
    message = "Secrets not configured"


class UnreadableSecret(Problem):
    """The stored value is damaged, was moved between rows, or is sealed with an unknown key."""

    kind = ProblemKind.FAILED
    message = "A secret could not be opened"
