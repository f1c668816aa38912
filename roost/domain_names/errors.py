"""Errors of domains (contract, Errors)."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict


class InvalidDomain(InvalidInput):
    """The name is malformed, reserved, or cannot belong to a tenant."""

    message = "Invalid domain"


class DomainLimitReached(InvalidInput):
    message = "Domain limit reached"


class DomainNotFound(NotFound):
    message = "Domain not found"


class DomainTaken(ResourceConflict):
    """Another registration has the name: a subdomain, or a custom domain whose owner was verified."""

    message = "Domain already registered"


class CustomDomainsForbidden(AccessDenied):
    message = "Custom domains need the paid plan"


class OwnershipNotProven(InvalidInput):
    """The TXT record of the challenge is not visible; the message says which one is needed."""

    message = "The TXT record is not visible yet"
