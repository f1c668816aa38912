"""Requests of a fleet to the server. A refusal concerns one agent and does not end the program."""

from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx

from roost.cli.client.session import ServerSession, error_message

_JSON = "application/json"
_TIMEOUT_SECONDS = 900.0  # a template's agent may need that long; the server answers all else at once
_NOT_FOUND = 404


class FleetRequestRefused(Exception):  # noqa: N818 - what the server did
    """The server refused a request; the message is its own."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@dataclass(frozen=True)
class FleetRequest:
    """A request as plain data; `content` are bytes in place of JSON. Its representation shows neither."""

    method: str
    path: str
    body: Any = field(default=None, repr=False)
    content: bytes | None = field(default=None, repr=False)
    media_type: str = _JSON


class FleetClient:
    def __init__(self, session: ServerSession) -> None:
        self._session = session

    def get(self, path: str) -> Any:
        """Return the JSON at a path. Raises FleetRequestRefused."""
        return self.send(FleetRequest("GET", path))

    def find(self, path: str) -> Any:
        """Return the JSON at a path, None if there is nothing. Raises FleetRequestRefused."""
        response = self._request(FleetRequest("GET", path), _NOT_FOUND)
        return None if response.status_code == _NOT_FOUND else response.json()

    def find_content(self, path: str) -> bytes | None:
        """Return the bytes at a path, None if there is nothing. Raises FleetRequestRefused."""
        response = self._request(FleetRequest("GET", path), _NOT_FOUND)
        return None if response.status_code == _NOT_FOUND else response.content

    def send(self, request: FleetRequest) -> Any:
        """Send a request and return the JSON of the answer. Raises FleetRequestRefused."""
        return self._request(request).json()

    def _request(self, request: FleetRequest, allowed: int = 0) -> httpx.Response:
        response = self._session.request(
            request.method,
            request.path,
            request.body,
            content=request.content,
            headers=None if request.content is None else {"Content-Type": request.media_type},
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        if response.status_code >= 400 and response.status_code != allowed:
            raise FleetRequestRefused(error_message(response), response.status_code)
        return response
