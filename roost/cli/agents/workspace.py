"""Files of an agent's workspace for the command line, over one connection to the server."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from roost.cli.client.session import (
    TRANSFER_TIMEOUT_SECONDS,
    ServerSession,
    connection_errors,
    error_message,
    exit_with_response,
    open_http_client,
)

if TYPE_CHECKING:
    import httpx2 as httpx

_REFUSED = {400, 404}


@dataclass(frozen=True)
class RemoteEntry:
    """Entry of the workspace, with its path from there."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int = 0
    executable: bool = False


class FileRefused(Exception):  # noqa: N818 - the server's answer, not a failure
    """The server refuses the path, or the file is gone; the message says why."""


class Workspace:
    """Workspace of one agent. Every method exits on other errors than FileRefused."""

    def __init__(self, client: "httpx.Client", agent_id: str) -> None:
        self._client = client
        self._url = f"/v0/agents/{agent_id}/files"

    def find_entry(self, path: str) -> RemoteEntry | None:
        """Return the entry at a path, None if there is none."""
        if not path:
            return RemoteEntry("", "folder")
        try:
            for entry in self.list_entries(path.rpartition("/")[0], recursive=False):
                if entry.path == path:
                    return entry
        except FileRefused:
            return None
        return None

    def list_entries(self, path: str, *, recursive: bool) -> Iterator[RemoteEntry]:
        """Yield the entries of a folder in their order, each folder before its entries. Raises FileRefused."""
        query = {"path": path or ".", "recursive": str(recursive).lower()}
        cursor: str | None = ""
        while cursor is not None:
            answer = self._client.get(f"{self._url}/list", params=query | ({"cursor": cursor} if cursor else {}))
            _check_response(answer)
            page = answer.json()
            for entry in page["entries"]:
                yield RemoteEntry(entry["path"], entry["kind"], entry["size"], entry["executable"])
            cursor = page["nextCursor"]

    @contextmanager
    def open_file(self, path: str) -> Generator[Iterator[bytes]]:
        """Yield the content of a file. Raises FileRefused."""
        with self._client.stream("GET", f"{self._url}/content", params={"path": path}) as response:
            _check_response(response)
            yield response.iter_bytes()

    def save_file(self, path: str, content: Iterable[bytes], *, executable: bool) -> None:
        """Write a file with its folders. Raises FileRefused."""
        query = {"path": path} | ({"executable": "true"} if executable else {})
        _check_response(self._client.put(f"{self._url}/content", params=query, content=content))

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents, or keep it. Raises FileRefused."""
        _check_response(self._client.post(f"{self._url}/folder", json={"path": path}))


@contextmanager
def open_workspace(server: ServerSession, agent: str) -> Generator[Workspace]:
    """Find an agent by id or name, and yield its workspace. Exits on an error of the connection."""
    agent_id = server.find_agent(agent)["agentId"]
    with connection_errors(server.url), open_http_client(server, TRANSFER_TIMEOUT_SECONDS) as client:
        yield Workspace(client, agent_id)


def _check_response(response: "httpx.Response") -> None:
    if response.status_code >= 400:
        response.read()
        if response.status_code in _REFUSED:
            raise FileRefused(error_message(response))
        exit_with_response(response)
