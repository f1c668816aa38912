"""Errors of a Kubernetes API server, made from the `Status` in its answers.

Status: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/.
"""

import json
from typing import Any, cast

from roost.core.problem import DependencyAway, ProblemKind
from roost.drivers.runtime.contract import RuntimeFailed

JsonObject = dict[str, Any]
_LINE_CHARACTERS = 500


class KubernetesUnreachable(RuntimeFailed, DependencyAway):
    """No Kubernetes API server answers, or something else does; `message` says which.

    is_unsent: the server has not received the request.
    """

    def __init__(self, reason: str, *, is_unsent: bool = False) -> None:
        super().__init__(f"Kubernetes is unavailable: {to_line(reason)}")
        self.is_unsent = is_unsent


class KubernetesUntrusted(KubernetesUnreachable):
    """The certificate of the server is not the one that it should have."""


class KubernetesRefused(RuntimeFailed):
    """The API server answered with an error.

    status: of HTTP. reason: a word of the server such as `AlreadyExists`, or "". `retry_after` is in seconds.
    """

    def __init__(self, status: int, answer: JsonObject, retry_after: float | None = None) -> None:
        text = to_line(str(answer.get("message") or answer.get("reason") or f"status {status} without a reason"))
        super().__init__(f"Kubernetes: {text}", retry_after=retry_after)
        self.status, self.reason = status, str(answer.get("reason") or "")


class KubernetesUnauthorized(KubernetesRefused):
    """The credentials are missing, wrong or expired."""


class KubernetesForbidden(KubernetesRefused):
    """The role lacks a right, or an admission check, a quota or a webhook refused the object."""


class KubernetesNotFound(KubernetesRefused):
    """There is no such object or resource."""


class KubernetesAlreadyExists(KubernetesRefused):
    """There is an object of that name."""


class KubernetesConflict(KubernetesRefused):
    """The object has changed since it was read, or a precondition does not hold."""


class KubernetesExpired(KubernetesRefused):
    """The resource version or the page is no longer known: list again."""


class KubernetesInvalid(KubernetesRefused):
    """The object is invalid; `message` names the fields."""


class KubernetesThrottled(KubernetesRefused):
    """The server has too many requests and executed no part of this one, or an eviction must wait."""

    kind = ProblemKind.UNAVAILABLE


_KINDS: dict[int, type[KubernetesRefused]] = {
    401: KubernetesUnauthorized,
    403: KubernetesForbidden,
    404: KubernetesNotFound,
    409: KubernetesConflict,
    410: KubernetesExpired,
    422: KubernetesInvalid,
    429: KubernetesThrottled,
}


def make_refusal(status: int, answer: JsonObject, retry_after: float | None = None) -> KubernetesRefused:
    """Return the error for a `Status` object."""
    is_present = status == 409 and answer.get("reason") == "AlreadyExists"
    kind = KubernetesAlreadyExists if is_present else _KINDS.get(status, KubernetesRefused)
    return kind(status, answer, retry_after)


def parse_refusal(status: int, body: bytes | bytearray, retry_after: str | None = None) -> KubernetesRefused:
    """Return the error for an answer, which a proxy may have written."""
    try:
        answer = parse_object(body)
    except KubernetesUnreachable:
        answer = {"message": f"status {status}, and no reason of an API server: {body[:1000].decode(errors='replace')}"}
    seconds = retry_after if retry_after and retry_after.isdecimal() and len(retry_after) < 6 else None
    return make_refusal(status, answer, None if seconds is None else float(seconds))


def parse_object(text: bytes | bytearray) -> JsonObject:
    """Parse one object of the API server. Raises KubernetesUnreachable."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise KubernetesUnreachable("what answers is no API server: it sends no JSON objects")
    return cast("JsonObject", found)


def read_metadata(item: JsonObject) -> JsonObject:
    """Return the metadata of an object or a list. Raises KubernetesUnreachable."""
    found: object = item.get("metadata")
    if not isinstance(found, dict):
        raise KubernetesUnreachable("the API server sent an object without metadata")
    return cast("JsonObject", found)


def to_line(text: str) -> str:
    """Return a text of the server as one line of at most 500 characters."""
    shown = "".join(one if one.isprintable() else " " for one in text[: 4 * _LINE_CHARACTERS])
    return " ".join(shown.split())[:_LINE_CHARACTERS]
