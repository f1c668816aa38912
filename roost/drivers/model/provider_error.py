"""Find the error in a provider's answer, whatever its status and in each of the forms that providers use. Pure.

OpenAI `{"error": {"message", "code", "type"}}`, Ollama `{"error": "text"}`, Google `[{"error": {"code"}}]`,
Anthropic `{"type": "error", "error": {...}}`, vLLM and Mistral `{"object": "error", "message"}`, FastAPI
`{"detail": "text" or [{"loc", "msg"}]}`, others `{"message"}`, `{"errors": [{"message"}]}`, `{"error_msg"}` or text.
"""

from dataclasses import dataclass
from typing import Any

from roost.drivers.model.json_access import as_list, as_object, as_string

_STATUS_OF = {
    word: status
    for status, words in {  # types and codes of Anthropic, OpenAI and Google
        401: "authentication_error invalid_api_key unauthenticated unauthorized",
        403: "permission_error permission_denied billing_error forbidden",
        404: "not_found_error model_not_found not_found",
        413: "request_too_large",
        429: "rate_limit_error rate_limit_exceeded insufficient_quota resource_exhausted tokens requests "
        "too_many_requests",
        400: "invalid_request_error invalid_argument context_length_exceeded bad_request",
    }.items()
    for word in words.split()
}
_FIELDS = ("message", "Message", "detail", "error_message", "msg", "error_description", "title", "errors", "error")
_ANSWERS = ("choices", "data", "object", "type")  # an answer or an event has one of them, and a bare error none
_MAX_DEPTH = 5


@dataclass(frozen=True)
class ProviderError:
    """`status` is that of HTTP, as far as the error's code or type tells it; `code` is the provider's own."""

    message: str
    code: str | None
    status: int | None


def find_error(answer: Any) -> ProviderError | None:
    """Return the error that an answer with a status of success carries; None if it carries none."""
    if isinstance(answer, list):
        return find_error(next(iter(as_list(answer)), None))
    found = as_object(answer)
    choices = as_list(found.get("choices"))
    inner = next((one for choice in choices if (one := as_object(choice).get("error"))), None)
    if inner:
        return read_error(inner)
    kinds = {as_string(found.get(name)).casefold() for name in ("type", "object")}
    is_error = "error" in kinds or (found.get("success") is False and not choices)
    is_bare = not any(found.get(name) for name in _ANSWERS) and bool(read_error(found).message)
    return read_error(found) if found.get("error") or is_error or is_bare else None


def read_error(answer: Any) -> ProviderError:
    """Return the error that an answer is, known as one by its status or its place."""
    first: Any = next(iter(as_list(answer)), answer)
    outer = as_object(first)
    error: Any = (outer.get("error") is not True and outer.get("error")) or outer.get("base_resp") or first
    fields = as_object(error) or outer
    given = [fields.get(name) for name in ("code", "type", "status", "error_code", "statusCode")]
    codes = [str(value) for value in given if value not in (None, "", "error")]
    words = [code for code in codes if not code.isdecimal()]
    status = next((_status_of(code) for code in codes if _status_of(code)), None)
    return ProviderError(_message(error), words[0][:100] if words else None, status)


def _status_of(code: str) -> int | None:
    if code.isdecimal() and len(code) == 3 and 400 <= int(code) < 600:
        return int(code)
    return _STATUS_OF.get(code.casefold())


def _message(error: Any, depth: int = 0) -> str:
    """Return the sentence of an error; lists of faults are joined, each after the place that it names."""
    if isinstance(error, str):
        return error
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(error, list):
        return "; ".join(filter(None, (_message(one, depth + 1) for one in as_list(error)[:10])))
    fields = as_object(error)
    names = (*_FIELDS, "error_msg", "status_msg")
    text = next((found for name in names if (found := _message(fields.get(name), depth + 1))), "")
    place = ".".join(str(part)[:100] for part in as_list(fields.get("loc"))[:10])
    return f"{place}: {text}" if place and text else text
