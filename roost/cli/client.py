"""The command line's way to a server: which one, with which token, and what its refusals mean as exit codes.

`ROOST_URL` and `ROOST_TOKEN` name any server; without them, the one that runs on the data folder here is used, whose
address and key it left in `cli.json` (readable by its owner only).
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

from roost.cli.output import ExitCode, fail
from roost.core.sensitive import Sensitive

Data = Annotated[Path | None, typer.Option("--data", help="The data folder of the server (default .roost).")]
Name = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.")]

_CODES = {400: ExitCode.USAGE, 401: ExitCode.NOT_ALLOWED, 403: ExitCode.NOT_ALLOWED, 404: ExitCode.NOT_FOUND}
_CONNECT_SECONDS = 5.0
_LINE = 500
_SLOW_SECONDS = 600.0  # between two signs of life while much is sent, or hashed at the other end


@dataclass(frozen=True)
class ServerSession:
    """`url` is where to connect; `domain` forms host names; the key stays on this side of the socket.

    host: the name that requests are for, where it is not that of `url`.
    """

    url: str
    token: Sensitive[str]
    domain: str
    host: str | None = None

    def call(
        self, method: str, path: str, body: Any = None, *, patience: float = 180.0, missing: str | None = None
    ) -> Any:
        """The JSON answer to one request of the management API, waited for `patience` seconds.

        Leaves the program with a message on a refusal; `missing` is what to say in place of a bare 404.
        """
        with unreachable(self.url), _client(self, patience) as client:
            response = client.request(method, path, json=body)
        if missing and response.status_code == 404:
            fail(missing, ExitCode.NOT_FOUND)
        return self._read(response)

    def send(self, path: str, content: Iterable[bytes], headers: Mapping[str, str]) -> Any:
        """The JSON answer to content that is sent as it is read. Leaves the program with a message on a refusal."""
        with unreachable(self.url), _client(self, _SLOW_SECONDS) as client:
            response = client.post(path, content=content, headers=headers)
        return self._read(response)

    @contextmanager
    def stream(self, host: str, path: str) -> Generator[httpx.Response]:
        """The answer of one of the server's addresses, without a credential. Leaves the program on a refusal."""
        with unreachable(self.url), _client(replace(self, host=host), _SLOW_SECONDS) as client:
            del client.headers["Authorization"]
            with client.stream("GET", path) as response:
                if response.status_code >= 400:
                    response.read()
                    refuse(response)
                yield response

    def storage(self) -> "ServerSession":
        """The same server, asked for files."""
        return replace(self, host=self.host_of("api"))

    def _read(self, response: httpx.Response) -> Any:
        if response.status_code >= 400:
            refuse(response)
        try:
            return response.json()
        except ValueError:
            fail(f"What answers at {self.url} is not Roost.", ExitCode.UNREACHABLE)

    def agent(self, name: str) -> Mapping[str, Any]:
        """The agent with that id, or with that name if there is just one."""
        agents = self.call("GET", "/v0/agents")["agents"]
        found = [agent for agent in agents if name in (agent["agentId"], agent["name"])]
        exact = [agent for agent in found if agent["agentId"] == name] or found
        if not exact:
            fail(f"There is no agent {name!r}; `roost agents list` shows those that there are.", ExitCode.NOT_FOUND)
        if len(exact) > 1:
            fail(f"{len(exact)} agents are called {name!r}: use the id.", ExitCode.USAGE)
        return exact[0]

    def host_of(self, name: str) -> str:
        """The host name of an address below the domain, with the port: of `api`, of `<agent id>.agents`."""
        port = httpx.URL(self.url).port
        return f"{name}.{self.domain}" + (f":{port}" if port else "")


def segment(typed: str) -> str:
    """What was typed, as one segment of a path: a parser of arguments."""
    return quote(typed, safe="")


def _client(here: ServerSession, patience: float) -> httpx.Client:
    headers = {"Authorization": f"Bearer {here.token.reveal()}"} | ({"Host": here.host} if here.host else {})
    timeout = httpx.Timeout(patience, connect=_CONNECT_SECONDS)
    return httpx.Client(base_url=here.url, headers=headers, timeout=timeout, trust_env=False)


def session(data: Path | None) -> ServerSession:
    """The server to speak to. Leaves the program when there is none to be found."""
    url, token = os.environ.get("ROOST_URL"), os.environ.get("ROOST_TOKEN")
    if url and token:
        return ServerSession(url.rstrip("/"), Sensitive(token), os.environ.get("ROOST_DOMAIN", "localhost"))
    if url or token:
        fail("ROOST_URL and ROOST_TOKEN name a server together: set both, or none.", ExitCode.USAGE)
    from roost import config  # it brings half of the server with it, which most commands do without

    path = config.load_settings(data=data).data / "cli.json"
    try:
        found = json.loads(path.read_text())
        return ServerSession(found["url"], Sensitive(found["token"]), found["domain"])
    except FileNotFoundError:
        fail(f"No server has run on {path.parent} yet. Start one with `roost up`.", ExitCode.UNREACHABLE)
    except OSError as error:
        fail(f"{path}: {error.strerror}", ExitCode.NOT_ALLOWED)
    except (ValueError, KeyError, TypeError):
        fail(f"{path} is damaged; the next `roost up` writes it anew.", ExitCode.UNREACHABLE)


def refuse(response: httpx.Response) -> NoReturn:
    """Leave the program with the server's own words; of an agent that failed, with the reason."""
    try:
        body = response.json()
        message = told(body["error"])
        if reason := body.get("agent", {}).get("statusReason"):
            message = f"{message}. {reason}"
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"The server answered {response.status_code}{_plain(response)}."
    fail(message, _CODES.get(response.status_code, ExitCode.FAILED))


def _plain(response: httpx.Response) -> str:
    """What a storage gateway says of an error: a line of text."""
    is_text = response.headers.get("Content-Type", "").startswith("text/plain")
    line, _, _ = response.text.partition("\n")
    return f": {line[:_LINE]}" if is_text and line else ""


def told(error: Any) -> str:
    """The words of an error body: a text as Roost has it, or an object as OpenAI's clients know it."""
    return str(cast("dict[str, Any]", error).get("message", error) if isinstance(error, dict) else error)


@contextmanager
def unreachable(url: str) -> Generator[None]:
    """What goes wrong between here and the server, as an error message."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        fail(f"{url} is no address of a server.", ExitCode.USAGE)
    except httpx.ConnectError:
        fail(f"No server answers at {url}. Start one with `roost up`.", ExitCode.UNREACHABLE)
    except httpx.TimeoutException:
        fail(f"The server at {url} did not answer in time.", ExitCode.UNREACHABLE)
    except httpx.HTTPError as error:
        fail(f"The connection to {url} broke: {type(error).__name__}", ExitCode.UNREACHABLE)
