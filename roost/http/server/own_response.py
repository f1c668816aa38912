"""The bytes of the server's own short responses on a connection. Pure."""

from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus

from starlette.responses import Response

from roost.web import errors
from roost.web.url_rule import ErrorForm

CLOSE = b"connection: close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FORWARDED_METHODS = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
_ERROR_HEADERS: Mapping[int, Mapping[str, str]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": _FORWARDED_METHODS},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "1"},  # to requests beyond those that may wait on a connection
}
_PHRASES: Mapping[int, bytes] = {status.value: status.phrase.encode() for status in HTTPStatus}


def rejection_bytes(status: int, message: str, request_id: str, code: str | None = None) -> bytes:
    """Return the last response of a connection: an error in the form of the agents API."""
    error = errors.status_response(ErrorForm.AGENTS, status, message, _ERROR_HEADERS.get(status), code)
    return response_bytes(error, request_id, close=True)


def response_bytes(response: Response, request_id: str, *, close: bool = False, head: bool = False) -> bytes:
    """Return a whole response; `head` leaves out the body of a response to HEAD."""
    return b"".join(
        (
            status_line(response.status_code),
            *(b"%b: %b\r\n" % header for header in response.raw_headers),
            b"x-request-id: %b\r\n%b\r\n" % (request_id.encode(), CLOSE if close else b""),
            b"" if head else bytes(response.body),
        )
    )


@lru_cache(maxsize=600)
def status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, _PHRASES.get(status, b""))
