"""A server process with one agent in a container, whose processes can be killed and come back."""

import hashlib
import json
import os
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2 as httpx
import sqlalchemy as sa
from websockets.sync.client import ClientConnection, connect

from roost.agents.library.hub.maintenance import read_catalogue
from roost.agents.library.templates.model import Submission, TemplateSource
from roost.agents.library.templates.service import TemplateService
from roost.drivers.git.local_folder import LocalRepository
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.bwrap.record import ContainerRecord, find_marked, load_record
from roost.drivers.runtime.contract import Runtime
from tests.chaos.side_servers import fork_facilitator, fork_name_server
from tests.journeys.server_process import until
from tests.storage.server_crash import ServerProcesses
from tests.support.server import RunningServer

Tree = Mapping[str, tuple[str, int, str]]
"""Kind, permissions, and the hash of a file or the target of a link, by path."""
_QUIET_SECONDS = 90.0
_CONNECTION: Mapping[str, Any] = {"timeout": 120, "trust_env": False, "verify": False}
"""Loading the certificates takes 50 ms a request, and HTTP has nothing to verify."""
_SKILL = b"---\nname: reading\ndescription: Reads\n---\n\nRead.\n"
_MANIFEST: Mapping[str, Any] = {
    "version": 1,
    "agent": {"name": "Reader"},
    "engine": "fake",
    "template": {"slug": "reader"},
    "tasks": [{"name": name, "prompt": "Sum up", "schedule": "0 7 * * *"} for name in ("Digest", "Report")],
}
TEMPLATE_FILES = {f"books/{number}/notes.md": f"{number}\n".encode() for number in range(40)}
"""Files of the template that `Deployment.template` names."""


def read_tree(root: Path) -> Tree:
    """Read a folder on the host, without the repository of a clone."""
    tree: dict[str, tuple[str, int, str]] = {}
    for place, folders, files in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            path = Path(place, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found = ("link", 0, str(path.readlink()))
            elif stat.S_ISDIR(mode):
                found = ("folder", stat.S_IMODE(mode), "")
            else:
                found = ("file", stat.S_IMODE(mode), hashlib.sha256(path.read_bytes()).hexdigest())
            tree[str(path.relative_to(root))] = found
    return tree


class Deployment:
    """A server with containers of `bwrap`."""

    def __init__(self, folder: Path, database: str | None = None) -> None:
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir()
        self.database = database or f"sqlite:///{self.data / 'roost.db'}"
        self._engine = sa.create_engine(self.database, poolclass=sa.NullPool)
        self._servers = ServerProcesses(self.data, database, self.make_runtime)
        self._names, self._ledger = folder / "names", folder / "ledger"
        self._names.mkdir()
        self._ledger.mkdir()
        self._servers.environment |= {
            "ROOST_SNAPSHOT_DELAY": "3600",
            "ROOST_CATALOGUE": "true",
            "ROOST_DNS_SERVERS": f"127.0.0.1:{fork_name_server(self._names)}",
            "ROOST_FACILITATOR_URL": f"http://127.0.0.1:{fork_facilitator(self._ledger)}",
        }
        self._pid, told = self._servers.start(_prepare)
        self._key: str = told["key"]
        self._token: str = told["token"]
        self.agent_id: str = told["agent"]
        self.template: str = told["template"]
        self.port: int = told["port"]
        self.shell("echo first > first")  # histories are checked, and an empty workspace has none

    def make_runtime(self, data: Path) -> Runtime | None:
        """Return the runtime of the server, None for the default one."""

    def start(self) -> None:
        """Start the server unless it runs."""
        if not self._pid:
            self._pid, self.port = self._servers.start()

    def kill_server(self) -> None:
        if self._pid:
            self._servers.kill(self._pid)
        self._pid = 0

    def other_victims(self) -> Mapping[str, Callable[[], None]]:
        """Return what can be killed beside the server and a container: calls that kill it and start it again."""
        return {}

    def kill_container(self, agent_id: str) -> None:
        if record := self._records().get(agent_id):
            record.warden.kill()
            until(lambda: not record.is_alive())

    def containers(self) -> Mapping[str, int]:
        """Return the pid of each live container by agent."""
        return {agent_id: record.warden.pid for agent_id, record in self._records().items()}

    def check_owners(self) -> None:
        """Check that every process and folder is of an agent."""
        agents, paths = self.agents(), AgentPaths(self.data)
        assert {agent for agent, _ in find_marked(paths.mark)} == agents, "processes of no agent"
        assert {*paths.list_agents(), *paths.list_stored()} == agents, "folders of no agent"

    def end(self) -> None:
        """End all processes."""
        self.kill_server()
        for _, process in find_marked(AgentPaths(self.data).mark):
            process.kill()

    def workspaces(self) -> Mapping[str, Path]:
        """Return the folders of all workspaces by agent."""
        return {path.parent.name: path for path in self.data.glob("agents/*/workspace")}

    def tree(self, agent_id: str | None = None) -> Tree:
        return read_tree(self.workspaces()[agent_id or self.agent_id])

    def send(self, method: str, path: str, host: str | None = None, **options: Any) -> httpx.Response:
        """Send a request of the tenant to a path below `/v0`, or of the storage API below `/v3`."""
        is_storage = path.startswith("/v3")
        host = host or ("api.localhost" if is_storage else "agents.localhost")
        headers = {"Authorization": f"Bearer {self._key}", **options.pop("headers", {})}
        return self.visit(host, path if is_storage else f"/v0{path}", method, headers=headers, **options)

    def visit(self, host: str, path: str, method: str = "GET", **options: Any) -> httpx.Response:
        """Send a request of a visitor without a credential to any address."""
        headers = {"Host": f"{host}:{self.port}", **options.pop("headers", {})}
        return httpx.request(method, self._url(path), headers=headers, **_CONNECTION, **options)

    @contextmanager
    def stream(self, path: str, **headers: str) -> Generator[Iterator[str]]:
        """Give the lines of a response of the tenant as they come."""
        headers = {"Host": f"agents.localhost:{self.port}", "Authorization": f"Bearer {self._key}", **headers}
        with httpx.stream("GET", self._url(f"/v0{path}"), headers=headers, **_CONNECTION) as answer:
            assert answer.status_code == 200, answer.read()
            yield answer.iter_lines()

    @contextmanager
    def open_socket(self, path: str, **query: Any) -> Generator[ClientConnection]:
        """Open a WebSocket of the tenant; its threads end with it, because the next server is a fork."""
        sock = socket.create_connection(("127.0.0.1", self.port))
        uri = f"ws://agents.localhost:{self.port}/v0{path}?{urlencode(query)}"
        headers = {"Authorization": f"Bearer {self._key}"}
        options: dict[str, Any] = {"open_timeout": 60, "close_timeout": 5, "ping_interval": None}
        with connect(uri, sock=sock, additional_headers=headers, **options) as client:
            try:
                yield client
            finally:
                client.close()
                client.recv_events_thread.join(10)

    def set_text(self, name: str, text: str) -> None:
        """Set the TXT record of a name."""
        (self._names / f"{name}.").write_text(text)

    def settlements(self) -> Mapping[str, str]:
        """Return the transactions of the facilitator by nonce."""
        return {file.name: file.read_text() for file in self._ledger.iterdir()}

    def get(self, method: str, path: str, **options: Any) -> Any:
        """Return the answer of a request, which succeeds."""
        answer = self.send(method, path, **options)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def hub(self) -> Sequence[dict[str, Any]]:
        """Return the skills that come with Roost."""
        until(lambda: len(self.get("GET", "/hub?category=basics&limit=100")["skills"]) == len(read_catalogue()))
        return self.get("GET", "/hub?category=basics&limit=100&sort=name")["skills"]

    def store(self, files: Mapping[str, bytes]) -> str:
        """Store a folder through the storage API, and return its CID."""
        parts = [("file", (f"top/{path}", content)) for path, content in files.items()]
        options: dict[str, Any] = {"files": parts, "data": {"network": "private"}}
        return self.get("POST", "/v3/files", host="uploads.localhost", **options)["data"]["cid"]

    def upload(self, content: bytes, **fields: str) -> dict[str, Any]:
        """Store a private file through the storage API, and return its record."""
        options: dict[str, Any] = {"files": [("file", ("a.txt", content))], "data": {"network": "private", **fields}}
        return self.get("POST", "/v3/files", host="uploads.localhost", **options)["data"]

    def drop_files(self) -> None:
        """Delete all files of the storage API."""
        for file in self.get("GET", "/v3/files/private")["data"]["files"]:
            self.get("DELETE", f"/v3/files/private/{file['id']}")

    def read(self, agent_id: str, path: str) -> str:
        """Read a file of a workspace."""
        return (self.workspaces()[agent_id] / path).read_text()

    def shell(self, script: str) -> None:
        done = self.get("POST", f"/agents/{self.agent_id}/console/exec", json={"command": script})
        assert done["exitCode"] == 0, done

    def sync(self, agent_id: str | None = None) -> str:
        """Take a snapshot, and return its CID."""
        return self.get("POST", f"/agents/{agent_id or self.agent_id}/snapshots/sync")["snapshotCid"]

    def git(self, *arguments: str | Path) -> str:
        """Run Git; `URL` stands for the address of the agent's repository."""
        done = self.try_git(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def try_git(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        url = f"http://x:{self._token}@agents.localhost:{self.port}/v0/agents/{self.agent_id}/git"
        user = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "safe.directory=*")
        return subprocess.run(
            ["git", *user, *(url if one == "URL" else one for one in arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_TERMINAL_PROMPT": "0"},
        )

    def bare(self, *arguments: str, agent_id: str | None = None) -> str:
        """Run Git on the repository of an agent."""
        return self.git("--git-dir", self.data / "git" / (agent_id or self.agent_id), *arguments)

    def rows(self, query: str, **values: Any) -> Sequence[Any]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query), values)]

    def execute(self, statement: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def agents(self) -> set[str]:
        return {agent for (agent,) in self.rows("SELECT id FROM agents")}

    def settle(self) -> None:
        """Wait until no operation is unfinished and each agent runs in its container."""
        try:
            until(lambda: not self._unsettled(), _QUIET_SECONDS)
        except AssertionError:
            raise AssertionError(f"not at rest: {self._unsettled()}") from None

    def _records(self) -> Mapping[str, ContainerRecord]:
        """Return the records of live containers by agent."""
        records = [load_record(path) for path in self.data.glob("run/*/container.json")]
        return {record.agent_id: record for record in records if record is not None and record.is_alive()}

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _unsettled(self) -> Sequence[Any]:
        operations = self.rows("SELECT kind, subject, state, attempts FROM operations WHERE finished_at IS NULL")
        agents = self.rows("SELECT id, state, reason FROM agents WHERE state <> 'running' OR deleted")
        without = self.agents() ^ self.containers().keys()
        return [*operations, *agents, *without]


async def _prepare(server: RunningServer) -> dict[str, Any]:
    key = server.key()
    client = server.client(key)
    agent = (await client.post("/v0/agents", json={"name": "a"})).json()["agent"]
    skill = (await client.post("/v0/skills", files={"file": ("reading/SKILL.md", _SKILL)})).json()["skill"]
    template = await _submit_template(server, agent["userId"], skill["skillCid"])
    return {
        "key": key,
        "agent": agent["agentId"],
        "token": agent["gatewayToken"],
        "template": template,
        "port": server.port,
    }


async def _submit_template(server: RunningServer, tenant_id: str, skill_cid: str) -> str:
    """Publish a template of a folder of this machine, and return its slug."""
    roost = server.roost
    with tempfile.TemporaryDirectory() as folder:
        for path, content in TEMPLATE_FILES.items():
            file = Path(folder, "workspace", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        manifest = {**_MANIFEST, "skills": [{"cid": skill_cid, "name": "reading"}]}
        Path(folder, "manifest.json").write_text(json.dumps(manifest))
        quota = roost.storage.files.files.quota
        service = TemplateService(roost.core.db, LocalRepository(Path(folder)), roost.storage.content, quota, ["fake"])
        template, _ = await service.submit(tenant_id, Submission(TemplateSource("")))
    return template.slug
