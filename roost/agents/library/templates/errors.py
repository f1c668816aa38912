"""Errors of templates (contract, Errors)."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict


class TemplateNotFound(NotFound):
    """Unknown id or slug, archived, or a draft of another tenant; the response does not say which."""

    message = "Template not found"


class InvalidTemplate(InvalidInput):
    """The repository holds no valid template; the body lists `errors` and `warnings`, each with path and message."""

    message = "Invalid template"


class TemplateSlugTaken(ResourceConflict):
    message = "Another template has this slug"


class TemplateChanged(ResourceConflict):
    message = "The template was changed by another request"


class TemplateLimitReached(AccessDenied):
    message = "Template limit reached"
