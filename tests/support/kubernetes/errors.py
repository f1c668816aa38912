"""Errors as the Kubernetes API server answers them: `Status` objects with its reasons and messages."""

from dataclasses import dataclass, field
from json import dumps
from typing import Any

from tests.support.kubernetes.resources import Object, Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_TYPES = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}


@dataclass(eq=False)
class ApiError(Exception):
    """A refusal; `details` are those of its `Status`, `headers` go beside it."""

    code: int
    reason: str
    message: str
    details: Object | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    continue_token: str = ""

    def status(self) -> Object:
        """Return the `Status` object."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        found: Object = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        found["message"] = self.message
        if self.reason:
            found["reason"] = self.reason
        if self.details is not None:
            found["details"] = self.details
        return found | {"code": self.code}


@dataclass(frozen=True)
class FieldError:
    """A field that validation refuses; `type` is the text that messages begin with, such as `Invalid value`."""

    field: str
    type: str
    detail: str = ""
    value: Any = None

    @property
    def body(self) -> str:
        shown = self.type
        if self.type in {"Invalid value", "Unsupported value", "Duplicate value", "Not found", "Too many"}:
            shown += f": {dumps(self.value, ensure_ascii=False)}"
        return f"{shown}: {self.detail}" if self.detail else shown


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str, *, generated: bool = False) -> ApiError:
    message = f'{resource.qualified} "{name}" already exists'
    if generated:
        message += ", the server was not able to generate a unique name for the object"
    return ApiError(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


def forbidden(resource: Resource, name: str, why: str, causes: list[Object] | None = None) -> ApiError:
    shown = f'{resource.qualified} "{name}"' if name else resource.qualified
    details = _details(resource, name) | ({"causes": causes} if causes else {})
    return ApiError(403, "Forbidden", f"{shown} is forbidden: {why}", details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def invalid(group: str, kind: str, name: str, errors: list[FieldError]) -> ApiError:
    messages = list(dict.fromkeys(f"{one.field}: {one.body}" for one in errors))
    shown = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    causes = [{"reason": _TYPES[one.type], "message": one.body, "field": one.field} for one in errors]
    details = {"name": name, "group": group, "kind": kind, "causes": causes}
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {shown}'
    return ApiError(422, "Invalid", message, {key: value for key, value in details.items() if value})


def invalid_object(resource: Resource, name: str, errors: list[FieldError]) -> ApiError:
    return invalid(resource.group, resource.kind, name, errors)


def invalid_options(kind: str, *errors: FieldError) -> ApiError:
    return invalid("meta.k8s.io", kind, "", list(errors))


def unprocessable() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def invalid_patch(patched: str, why: str) -> ApiError:
    return invalid("", "", "", [FieldError("patch", "Invalid value", why, patched)])


def internal_error(message: str) -> ApiError:
    details = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details)


def expired(message: str, continue_token: str = "") -> ApiError:
    return ApiError(410, "Expired", message, continue_token=continue_token)


def version_too_large(wanted: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return ApiError(504, "Timeout", message, details, {"Retry-After": "1"})


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def _details(resource: Resource, name: str) -> Object:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}
