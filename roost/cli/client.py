"""The command line's way to a server: which one, with which token, and what its refusals mean as exit codes.

`ROOST_URL` and `ROOST_TOKEN` name any server; without them, the one that runs on the data folder here is used, whose
address and key it left in `cli.json` (readable by its owner only).
"""

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import httpx2 as httpx
import typer

from roost.cli.output import Exit, fail
from roost.core.sensitive import Sensitive

Data = Annotated[Path | None, typer.Option("--data", help="The data folder of the server (default .roost).")]
Name = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.")]

_CODES = {400: Exit.USAGE, 401: Exit.NOT_ALLOWED, 403: Exit.NOT_ALLOWED, 404: Exit.NOT_FOUND}
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class Session:
    """`url` is where to connect; `domain` forms the agents' host names; the key stays on this side of the socket."""

    url: str
    token: Sensitive[str]
    domain: str

    def call(self, method: str, path: str, body: Any = None, *, patience: float = 180.0) -> Any:
        """The JSON answer to one request of the management API, waited for `patience` seconds.

        Leaves the program with a message on a refusal.
        """
        headers = {"Authorization": f"Bearer {self.token.reveal()}"}
        timeout = httpx.Timeout(patience, connect=_CONNECT_SECONDS)
        with unreachable(self.url), httpx.Client(timeout=timeout, trust_env=False) as client:
            response = client.request(method, f"{self.url}{path}", json=body, headers=headers)
        if response.status_code >= 400:
            refuse(response)
        try:
            return response.json()
        except ValueError:
            fail(f"What answers at {self.url} is not Roost.", Exit.UNREACHABLE)

    def agent(self, name: str) -> Mapping[str, Any]:
        """The agent with that id, or with that name if there is just one."""
        agents = self.call("GET", "/v0/agents")["agents"]
        found = [agent for agent in agents if name in (agent["agentId"], agent["name"])]
        exact = [agent for agent in found if agent["agentId"] == name] or found
        if not exact:
            fail(f"There is no agent {name!r}; `roost agents list` shows those that there are.", Exit.NOT_FOUND)
        if len(exact) > 1:
            fail(f"{len(exact)} agents are called {name!r}: use the id.", Exit.USAGE)
        return exact[0]

    def host_of(self, agent_id: str) -> str:
        port = httpx.URL(self.url).port
        return f"{agent_id}.agents.{self.domain}" + (f":{port}" if port else "")


def session(data: Path | None) -> Session:
    """The server to speak to. Leaves the program when there is none to be found."""
    url, token = os.environ.get("ROOST_URL"), os.environ.get("ROOST_TOKEN")
    if url and token:
        return Session(url.rstrip("/"), Sensitive(token), os.environ.get("ROOST_DOMAIN", "localhost"))
    if url or token:
        fail("ROOST_URL and ROOST_TOKEN name a server together: set both, or none.", Exit.USAGE)
    from roost import config  # it brings half of the server with it, which most commands do without

    path = config.load(data=data).data / "cli.json"
    try:
        found = json.loads(path.read_text())
        return Session(found["url"], Sensitive(found["token"]), found["domain"])
    except FileNotFoundError:
        fail(f"No server has run on {path.parent} yet. Start one with `roost up`.", Exit.UNREACHABLE)
    except OSError as error:
        fail(f"{path}: {error.strerror}", Exit.NOT_ALLOWED)
    except (ValueError, KeyError, TypeError):
        fail(f"{path} is damaged; the next `roost up` writes it anew.", Exit.UNREACHABLE)


def refuse(response: httpx.Response) -> NoReturn:
    """Leave the program with the server's own words; of an agent that failed, with the reason."""
    try:
        body = response.json()
        message = told(body["error"])
        if reason := body.get("agent", {}).get("statusReason"):
            message = f"{message}. {reason}"
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"The server answered {response.status_code}."
    fail(message, _CODES.get(response.status_code, Exit.FAILED))


def told(error: Any) -> str:
    """The words of an error body: a text as Roost has it, or an object as OpenAI's clients know it."""
    return str(cast("dict[str, Any]", error).get("message", error) if isinstance(error, dict) else error)


@contextmanager
def unreachable(url: str) -> Generator[None]:
    """What goes wrong between here and the server, as an error message."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        fail(f"{url} is no address of a server.", Exit.USAGE)
    except httpx.ConnectError:
        fail(f"No server answers at {url}. Start one with `roost up`.", Exit.UNREACHABLE)
    except httpx.TimeoutException:
        fail(f"The server at {url} did not answer in time.", Exit.UNREACHABLE)
    except httpx.HTTPError as error:
        fail(f"The connection to {url} broke: {type(error).__name__}", Exit.UNREACHABLE)
