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
from typing import Annotated, Any

import httpx2 as httpx
import typer

from roost.cli.output import Exit, fail
from roost.core.sensitive import Sensitive

Data = Annotated[Path | None, typer.Option("--data", help="The data folder of the server (default .roost).")]

_CODES = {401: Exit.NOT_ALLOWED, 403: Exit.NOT_ALLOWED, 404: Exit.NOT_FOUND}
_TIMEOUT = httpx.Timeout(180.0, connect=5.0)


@dataclass(frozen=True)
class Session:
    """`url` is where to connect; `domain` forms the agents' host names; the key stays on this side of the socket."""

    url: str
    token: Sensitive[str]
    domain: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON answer to one request of the management API. Leaves the program with a message on a refusal."""
        headers = {"Authorization": f"Bearer {self.token.reveal()}"}
        with unreachable(self.url), httpx.Client(timeout=_TIMEOUT, trust_env=False) as client:
            response = client.request(method, f"{self.url}{path}", json=body, headers=headers)
        if response.status_code >= 400:
            refuse(response)
        return response.json()

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
    url, token = os.environ.get("ROOST_URL"), os.environ.get("ROOST_TOKEN")
    if url and token:
        return Session(url.rstrip("/"), Sensitive(token), os.environ.get("ROOST_DOMAIN", "localhost"))
    from roost import config  # it brings half of the server with it, which most commands do without

    path = config.load(data=data).data / "cli.json"
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        fail(f"No server has run on {path.parent} yet. Start one with `roost up`.", Exit.UNREACHABLE)
    return Session(found["url"], Sensitive(found["token"]), found["domain"])


def refuse(response: httpx.Response) -> None:
    """Leave the program with the server's own words."""
    try:
        body = response.json()["error"]
        message = body if isinstance(body, str) else body["message"]
    except (ValueError, KeyError, TypeError):
        message = f"The server answered {response.status_code}"
    fail(message, _CODES.get(response.status_code, Exit.FAILED))


@contextmanager
def unreachable(url: str) -> Generator[None]:
    try:
        yield
    except httpx.ConnectError:
        fail(f"No server answers at {url}. Start one with `roost up`.", Exit.UNREACHABLE)
    except httpx.TimeoutException:
        fail(f"The server at {url} did not answer in time.", Exit.UNREACHABLE)
    except httpx.HTTPError as error:
        fail(f"The connection to {url} broke: {type(error).__name__}", Exit.UNREACHABLE)
