"""Sessions of the command line with a server: address, token, requests, and exit codes for its errors.

`ROOST_URL` and `ROOST_TOKEN` name any server. Without them, the server of the local data folder is used, which wrote
its address and key to `cli.json` (readable by its owner only).
"""

import json
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast
from urllib.parse import quote

import httpx2 as httpx
import typer

from roost.cli.output import ExitCode, exit_with_error
from roost.core.sensitive import Sensitive

Data = Annotated[Path | None, typer.Option("--data", help="The data folder of the server (default .roost).")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.")]

_EXIT_CODES = {400: ExitCode.USAGE, 401: ExitCode.NOT_ALLOWED, 403: ExitCode.NOT_ALLOWED, 404: ExitCode.NOT_FOUND}
_CONNECT_SECONDS = 5.0
_MAX_LINE = 500
_TRANSFER_TIMEOUT_SECONDS = 600.0  # between two chunks; the server hashes large content before it answers


@dataclass(frozen=True)
class ServerSession:
    """The server to connect to, with its API key.

    domain: forms the host names of its addresses. host: the Host header, if not the host of `url`.
    """

    url: str
    token: Sensitive[str]
    domain: str
    host: str | None = None

    def call(
        self, method: str, path: str, body: Any = None, *, timeout_seconds: float = 180.0, not_found: str | None = None
    ) -> Any:
        """Send one request and return its JSON answer. Exits on an error status.

        not_found: the error message for a 404, instead of the server's own.
        """
        with connection_errors(self.url), _http_client(self, timeout_seconds) as client:
            response = client.request(method, path, json=body)
        if not_found and response.status_code == 404:
            exit_with_error(not_found, ExitCode.NOT_FOUND)
        return self._parse_response(response)

    def send(self, path: str, content: Iterable[bytes], headers: Mapping[str, str]) -> Any:
        """Stream content to the server and return its JSON answer. Exits on an error status."""
        with connection_errors(self.url), _http_client(self, _TRANSFER_TIMEOUT_SECONDS) as client:
            response = client.post(path, content=content, headers=headers)
        return self._parse_response(response)

    @contextmanager
    def stream(self, host: str, path: str) -> Generator[httpx.Response]:
        """Get `path` of another host name of the server, without a credential. Exits on an error status."""
        with connection_errors(self.url), _http_client(replace(self, host=host), _TRANSFER_TIMEOUT_SECONDS) as client:
            del client.headers["Authorization"]
            with client.stream("GET", path) as response:
                if response.status_code >= 400:
                    response.read()
                    exit_with_response(response)
                yield response

    def storage_session(self) -> "ServerSession":
        """Return a session with the storage API of the same server."""
        return replace(self, host=self.host_name("api"))

    def _parse_response(self, response: httpx.Response) -> Any:
        if response.status_code >= 400:
            exit_with_response(response)
        try:
            return response.json()
        except ValueError:
            exit_with_error(f"The server at {self.url} is not Roost: its answer is not JSON.", ExitCode.UNREACHABLE)

    def find_agent(self, name: str) -> Mapping[str, Any]:
        """Return the agent with that id, or the only agent with that name. Exits if there is none or several."""
        agents = self.call("GET", "/v0/agents")["agents"]
        found = [agent for agent in agents if name in (agent["agentId"], agent["name"])]
        exact = [agent for agent in found if agent["agentId"] == name] or found
        if not exact:
            exit_with_error(f"There is no agent {name!r}; `roost agents list` shows all.", ExitCode.NOT_FOUND)
        if len(exact) > 1:
            exit_with_error(f"{len(exact)} agents have the name {name!r}: use the id.", ExitCode.USAGE)
        return exact[0]

    def host_name(self, name: str) -> str:
        """Return the host and port of a name below the domain: `api`, `<agent id>.agents`."""
        port = httpx.URL(self.url).port
        return f"{name}.{self.domain}" + (f":{port}" if port else "")


def path_segment(value: str) -> str:
    """Quote an argument as one segment of a path."""
    return quote(value, safe="")


def _http_client(server: ServerSession, timeout_seconds: float) -> httpx.Client:
    headers = {"Authorization": f"Bearer {server.token.reveal()}"} | ({"Host": server.host} if server.host else {})
    timeout = httpx.Timeout(timeout_seconds, connect=_CONNECT_SECONDS)
    return httpx.Client(base_url=server.url, headers=headers, timeout=timeout, trust_env=False)


def load_session(data: Path | None) -> ServerSession:
    """Return the session that the environment or the data folder names. Exits if there is none."""
    url, token = os.environ.get("ROOST_URL"), os.environ.get("ROOST_TOKEN")
    if url and token:
        return ServerSession(url.rstrip("/"), Sensitive(token), os.environ.get("ROOST_DOMAIN", "localhost"))
    if url or token:
        exit_with_error("ROOST_URL and ROOST_TOKEN belong together: set both or neither.", ExitCode.USAGE)
    from roost import config  # slow to import, and not needed when the environment names the server

    path = config.load_settings(data=data).data / "cli.json"
    try:
        found = json.loads(path.read_text())
        return ServerSession(found["url"], Sensitive(found["token"]), found["domain"])
    except FileNotFoundError:
        exit_with_error(f"No server has used {path.parent} yet. Start one with `roost up`.", ExitCode.UNREACHABLE)
    except OSError as error:
        exit_with_error(f"{path}: {error.strerror}", ExitCode.NOT_ALLOWED)
    except (ValueError, KeyError, TypeError):
        exit_with_error(f"{path} is damaged; the next `roost up` rewrites it.", ExitCode.UNREACHABLE)


def exit_with_response(response: httpx.Response) -> NoReturn:
    """Exit with the server's error message, and with the reason of a failed agent."""
    try:
        body = response.json()
        message = error_text(body["error"])
        if reason := body.get("agent", {}).get("statusReason"):
            message = f"{message}. {reason}"
        if detail := response.headers.get("X-Error-Detail"):
            message = f"{message}: {json.loads(detail)}"
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"The server answered {response.status_code}{_text_error(response)}."
    exit_with_error(message, _EXIT_CODES.get(response.status_code, ExitCode.FAILED))


def _text_error(response: httpx.Response) -> str:
    """Return the first line of a plain-text error body, as storage gateways send it."""
    is_text = response.headers.get("Content-Type", "").startswith("text/plain")
    line, _, _ = response.text.partition("\n")
    return f": {line[:_MAX_LINE]}" if is_text and line else ""


def error_text(error: Any) -> str:
    """Return the message of an error body: a string in Roost's API, an object in OpenAI's."""
    return str(cast("dict[str, Any]", error).get("message", error) if isinstance(error, dict) else error)


@contextmanager
def connection_errors(url: str) -> Generator[None]:
    """Exit with an error message when the connection to `url` fails."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        exit_with_error(f"{url!r} is not an HTTP or HTTPS URL.", ExitCode.USAGE)
    except httpx.ConnectError:
        exit_with_error(f"No server answers at {url}. Start one with `roost up`.", ExitCode.UNREACHABLE)
    except httpx.TimeoutException:
        exit_with_error(f"The server at {url} did not answer in time.", ExitCode.UNREACHABLE)
    except httpx.HTTPError as error:
        exit_with_error(f"The connection to {url} broke: {type(error).__name__}", ExitCode.UNREACHABLE)
