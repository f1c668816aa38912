"""`roost cp` copies files between this machine and an agent's workspace; `roost clone` clones its Git repository.

Contents are streamed, so memory use does not depend on their size.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import (
    TRANSFER_TIMEOUT_SECONDS,
    Data,
    ServerSession,
    connection_errors,
    error_message,
    exit_with_response,
    load_session,
    open_http_client,
)
from roost.cli.client.transfer import count_bytes, progress_bar, save_chunks
from roost.cli.output.output import ExitCode, error_console, exit_with_error, file_errors, print_line
from roost.storage.content.unixfs.entry_name import decode_entry_name
from roost.storage.content.unixfs.errors import InvalidEntryName

if TYPE_CHECKING:
    import httpx2 as httpx


_HELP = "A local path, or AGENT:PATH in an agent's workspace."
_CHUNK_BYTES = 256 * 1024
_EXECUTABLE, _READABLE = 0o111, 0o444
_REFUSED = {400, 404}


def copy_files(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=_HELP)],
    target: Annotated[str, typer.Argument(metavar="TARGET", help=f"{_HELP} `-` is standard output.")],
    data: Data = None,
) -> None:
    """Copy files and folders between this machine and an agent's workspace: AGENT:PATH.

    An existing folder gets the source below its name, as with `cp -r`; a source that ends in `/.` is copied without its
    own name. Links are skipped.
    """
    origin, destination = _parse_remote(source), _parse_remote(target)
    if origin and not destination:
        server = load_session(data)
        with open_workspace(server, origin.agent) as workspace, progress_bar("Downloading", None) as advance:
            report = _Download(workspace, advance).copy(origin, target)
    elif destination and not origin:
        size = sum(info.st_size for _, info in _walk_local(source) if S_ISREG(info.st_mode))
        server = load_session(data)
        with open_workspace(server, destination.agent) as workspace, progress_bar("Uploading", size) as advance:
            report = _Upload(workspace, advance).copy(source, destination)
    else:
        exit_with_error(
            "Name an agent on one side: `roost cp AGENT:PATH LOCAL` or `roost cp LOCAL AGENT:PATH`.", ExitCode.USAGE
        )
    if target != "-":
        print_line(f"Copied {report.files} file{'' if report.files == 1 else 's'}.")
    if report.refused:
        raise typer.Exit(ExitCode.FAILED)


def clone_agent(
    agent: AgentName,
    folder: Annotated[str | None, typer.Argument(metavar="FOLDER", help="Default: the agent's name.")] = None,
    data: Data = None,
) -> None:
    """Clone an agent's files and their history with Git; `git pull` and `git push` work in the clone."""
    server = load_session(data)
    found = server.find_agent(agent)
    git = shutil.which("git")
    if git is None:
        exit_with_error("Git is not installed on this machine.")
    scheme = urlsplit(server.url).scheme
    url = f"{scheme}://{server.host_name('agents')}/v0/agents/{found['agentId']}/git"
    target = folder or found["name"].replace("/", "-")
    if target.startswith("-"):
        exit_with_error("Name the FOLDER to clone to.", ExitCode.USAGE)
    from roost import config  # slow to import

    data_folder = None if server.domain is None else config.load_settings(data=data).data.resolve()
    helper = f"credential.{url}.helper={_credential_helper(found['agentId'], data_folder)}"
    os.execv(git, [git, "clone", "-c", helper, "--", url, target])  # noqa: S606 - Git shows its progress itself


def _credential_helper(agent_id: str, folder: Path | None) -> str:
    """Return a helper (gitcredentials(7)) that asks the server for the token, so that no file has it.

    folder: the server's data folder; None if the environment names the server, which it then does later as well.
    """
    command = [sys.executable, "-m", "roost", "agents", "token", agent_id]
    command += [] if folder is None else ["--data", str(folder)]
    return f'!f() {{ test "$1" = get && echo username=roost && echo "password=$({shlex.join(command)})"; }}; f'


@dataclass(frozen=True)
class RemoteEntry:
    """Entry of the workspace, with its path from there."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
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
                yield RemoteEntry(entry["path"], entry["kind"], entry["executable"])
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


@dataclass(frozen=True)
class _RemotePath:
    """Path in an agent's workspace, "" for the workspace itself."""

    agent: str
    path: str
    is_folder: bool  # it ends with a slash
    is_content: bool  # it ends with `.`, or is the workspace: its own name is not copied


@dataclass
class _Report:
    files: int = 0
    refused: int = 0

    def skip(self, path: str, reason: str) -> None:
        print_line(f"Skipped {path}: {reason}", error_console)

    def refuse(self, path: str, reason: str) -> None:
        self.refused += 1
        self.skip(path, reason)


class _Download:
    """Copy from a workspace; the names in it are not trusted."""

    def __init__(self, workspace: Workspace, advance: Callable[[int], None]) -> None:
        self._workspace, self._advance, self._report = workspace, advance, _Report()

    def copy(self, source: _RemotePath, target: str) -> _Report:
        entry = self._workspace.find_entry(source.path)
        if entry is None:
            exit_with_error(f"There is no {source.path!r} in the workspace of {source.agent}.", ExitCode.NOT_FOUND)
        if entry.kind == "folder" and target == "-":
            exit_with_error(f"{source.path!r} is a folder; only a file can go to standard output.", ExitCode.USAGE)
        local = Path(target)
        if local.is_dir() and not source.is_content:
            local /= source.path.rpartition("/")[2]
        try:
            if entry.kind == "folder":
                self._copy_folder(source.path, local)
            else:
                self._copy_entry(entry, local)
        except FileRefused as refusal:
            exit_with_error(f"{source.path or 'the workspace'}: {refusal}")
        return self._report

    def _copy_folder(self, path: str, target: Path) -> None:
        _make_local_folder(target, parents=True)
        folders = {target}
        for entry in self._workspace.list_entries(path, recursive=True):
            parts = _read_names(entry.path.removeprefix(f"{path}/" if path else ""))
            local = target.joinpath(*parts)
            if not parts or local.parent not in folders:
                self._report.refuse(entry.path, "the path is not valid")
            elif entry.kind == "folder":
                _make_local_folder(local)
                folders.add(local)
            else:
                self._copy_entry(entry, local)

    def _copy_entry(self, entry: RemoteEntry, target: Path) -> None:
        if entry.kind != "file":
            self._report.skip(entry.path, "a link" if entry.kind == "link" else "not a regular file")
            return
        try:
            with self._workspace.open_file(entry.path) as content:
                save_chunks(count_bytes(content, self._advance), target)
        except FileRefused as refusal:
            self._report.refuse(entry.path, str(refusal))
            return
        self._report.files += 1
        if entry.executable and target != Path("-"):
            mode = target.stat().st_mode
            target.chmod(mode | (mode & _READABLE) >> 2)  # who may read it may run it


class _Upload:
    """Copy to a workspace."""

    def __init__(self, workspace: Workspace, advance: Callable[[int], None]) -> None:
        self._workspace, self._advance, self._report = workspace, advance, _Report()

    def copy(self, source: str, target: _RemotePath) -> _Report:
        base = target.path
        found = self._workspace.find_entry(base)
        if not _is_content(source) and (target.is_folder or (found and found.kind == "folder")):
            base = "/".join(filter(None, (base, Path(source).name)))
        for path, info in _walk_local(source):
            relative = Path(path).relative_to(source).as_posix()
            remote = "/".join(part for part in (base, relative) if part not in {"", "."})
            try:
                self._copy_entry(path, info, remote)
            except FileRefused as refusal:
                self._report.refuse(path, str(refusal))
            except OSError as error:
                exit_with_error(f"{path}: {error.strerror}")
        return self._report

    def _copy_entry(self, path: str, info: os.stat_result, remote: str) -> None:
        if not remote.isprintable():
            raise FileRefused("the name has characters that are not printable")
        if S_ISDIR(info.st_mode):
            if remote:
                self._workspace.make_folder(remote)
        elif S_ISREG(info.st_mode):
            content = count_bytes(_read_file(path), self._advance)
            self._workspace.save_file(remote, content, executable=bool(info.st_mode & _EXECUTABLE))
            self._report.files += 1
        else:
            self._report.skip(path, "a link" if os.path.islink(path) else "not a regular file")  # noqa: PTH114 - as told


def _parse_remote(text: str) -> _RemotePath | None:
    """Return the path of `AGENT:PATH`, None for a local path. Exits if it leads out of the workspace."""
    agent, colon, path = text.partition(":")
    if not colon or not agent or "/" in agent:
        return None
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or (path.startswith("/") and parts[:1] != ["workspace"]):
        exit_with_error(f"{path!r} is not in the workspace.", ExitCode.USAGE)
    if path.startswith("/"):  # agents see the workspace at /workspace
        del parts[0]
    return _RemotePath(agent, "/".join(parts), path.endswith("/"), not parts or _is_content(path))


def _read_names(path: str) -> list[str]:
    """Return the local names of folders and file from a path of the server; none if it is not valid."""
    try:
        names = decode_entry_name(path).split("/")
    except InvalidEntryName:
        return []
    return names if {"", ".", ".."}.isdisjoint(names) and "\0" not in path else []


def _is_content(path: str) -> bool:
    """Return whether the last part has no name of its own."""
    return path.rpartition("/")[2] in {".", ".."}


def _walk_local(source: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield paths with their status, a folder before its entries, which are in the order of their names."""
    with file_errors(source):
        info = os.lstat(source)
        yield source, info
        if S_ISDIR(info.st_mode):
            for name in sorted(os.listdir(source)):  # noqa: PTH208 - a name may be of any bytes
                yield from _walk_local(os.path.join(source, name))  # noqa: PTH118 - keeps a leading `./`


def _read_file(path: str) -> Iterator[bytes]:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:  # noqa: PTH123 - not through a link
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _make_local_folder(path: Path, *, parents: bool = False) -> None:
    """Create a folder unless it is there. Exits if something else is, such as a link below the target."""
    with file_errors(path):
        if not parents and path.is_symlink():
            exit_with_error(f"{path} is a link, which is not followed.", ExitCode.USAGE)
        path.mkdir(parents=parents, exist_ok=True)
