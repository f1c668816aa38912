"""Errors of the hub (contract, Errors: unknown slugs are 404)."""

from roost.core.problem import (
    AccessDenied,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    ResourceConflict,
    ServiceUnavailable,
)


class InvalidHubRequest(InvalidInput):
    """A field of a request is malformed or missing; the message names it."""

    message = "Invalid hub request"


class InvalidHubCursor(InvalidInput):
    message = "Invalid cursor"


class HubSkillNotFound(NotFound):
    message = "Skill not found"


class HubVersionNotFound(NotFound):
    message = "Skill version not found"


class HubFileNotFound(NotFound):
    message = "File not found"


class HubVersionConflict(ResourceConflict):
    """The version is published with other content, or the content as a version of another number."""

    message = "Skill version conflict"


class LibrarySkillConflict(ResourceConflict):
    """The library has another skill with the name of the hub skill."""

    message = "Your library has another skill with this name"


class HubLimitReached(AccessDenied):
    message = "Hub limit reached"


class FeaturingRefused(AccessDenied):
    message = "Only the operator's own tenant can feature skills"


class OwnerRefused(AccessDenied):
    """The request publishes under the name of another tenant."""

    message = "Permission denied"


class SkillUploadTooLarge(PayloadTooLarge):
    message = "The uploaded files are too large"


class RegistryFailed(ServiceUnavailable):
    """A registry of other servers does not answer, or not as a registry does."""

    message = "The registry does not answer"


class RegistryRefused(AccessDenied):
    message = "Skills of other servers are installed by the agent's owner"
