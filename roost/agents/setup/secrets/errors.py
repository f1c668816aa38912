"""Errors of secrets (contract, Errors)."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, Problem, ResourceConflict, ServiceUnavailable


class InvalidSecret(InvalidInput):
    """The name or the value is invalid; the message gives the reason and never the value."""

    message = "Invalid secret"


class SecretLimitReached(AccessDenied):
    message = "Secret limit reached"


class DuplicateSecretName(ResourceConflict):
    message = "Duplicate secret name"
    field = "name"


class ConflictingSecrets(ResourceConflict):
    """Two credentials of one provider on one agent."""

    message = "Conflicting secrets"


class SecretAttached(ResourceConflict):
    message = "Secret is attached to an agent"


class SecretShared(ResourceConflict):
    """Other agents use the secret, and the request does not say that they may get another value."""

    message = "Other agents use this secret"


class SecretNotFound(NotFound):
    """Unknown id, secret of another tenant, or not attached; the response does not say which."""

    message = "Secret not found"


class SecretsNotConfigured(ServiceUnavailable):
    """The key-encryption key is missing or belongs to another deployment."""

    message = "Secrets not configured"


class UnreadableSecret(Problem):
    """The stored value is damaged, was moved between rows, or is sealed with an unknown key."""

    message = "A secret could not be opened"
