"""A server process with one agent in a container, whose processes can be killed and come back."""

import hashlib
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx
import sqlalchemy as sa

from roost.drivers.runtime.bwrap.record import ContainerRecord, load_record
from tests.journeys.server_process import until
from tests.server import RunningServer
from tests.storage.server_crash import Servers

Tree = Mapping[str, tuple[str, int, str]]
"""Kind, permissions, and the hash of a file or the target of a link, by path."""
_QUIET_SECONDS = 90.0


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
    def __init__(self, folder: Path, database: str | None = None) -> None:
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir()
        self.database = database or f"sqlite:///{self.data / 'roost.db'}"
        self._engine = sa.create_engine(self.database, poolclass=sa.NullPool)
        self._servers = Servers(self.data, database, is_isolated=True)
        self._servers.environment["ROOST_SNAPSHOT_DELAY"] = "3600"
        self._pid, told = self._servers.start(_prepare)
        self._key: str = told["key"]
        self._token: str = told["token"]
        self.agent_id: str = told["agent"]
        self._port: int = told["port"]

    def start(self) -> None:
        """Start the server unless it runs."""
        if not self._pid:
            self._pid, self._port = self._servers.start()

    def kill_server(self) -> None:
        if self._pid:
            self._servers.kill(self._pid)
        self._pid = 0

    def kill_container(self, agent_id: str) -> None:
        if record := self.containers().get(agent_id):
            record.warden.kill()
            until(lambda: not record.is_alive())

    def containers(self) -> Mapping[str, ContainerRecord]:
        """Return the records of live containers by agent."""
        records = [load_record(path) for path in self.data.glob("run/*/container.json")]
        return {record.agent_id: record for record in records if record is not None and record.is_alive()}

    def tree(self, agent_id: str | None = None) -> Tree:
        return read_tree(self.data / "agents" / (agent_id or self.agent_id) / "workspace")

    def call(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Send a request of the tenant."""
        headers = {"Host": f"agents.localhost:{self._port}", "Authorization": f"Bearer {self._key}"}
        url = f"http://127.0.0.1:{self._port}/v0/agents{path}"
        return httpx.request(method, url, headers=headers, json=body or None, timeout=120, trust_env=False)

    def get(self, method: str, path: str, **body: Any) -> Any:
        """Return the answer of a request, which succeeds."""
        answer = self.call(method, path, **body)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def shell(self, script: str) -> None:
        done = self.get("POST", f"/{self.agent_id}/console/exec", command=script)
        assert done["exitCode"] == 0, done

    def sync(self, agent_id: str | None = None) -> str:
        """Take a snapshot, and return its CID."""
        return self.get("POST", f"/{agent_id or self.agent_id}/snapshots/sync")["snapshotCid"]

    def git(self, *arguments: str | Path) -> str:
        """Run Git; `URL` stands for the address of the agent's repository."""
        done = self.try_git(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def try_git(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        url = f"http://x:{self._token}@agents.localhost:{self._port}/v0/agents/{self.agent_id}/git"
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

    def agents(self) -> set[str]:
        return {agent for (agent,) in self.rows("SELECT id FROM agents")}

    def settle(self) -> None:
        """Wait until no operation is unfinished and each agent runs in its container."""
        try:
            until(lambda: not self._unsettled(), _QUIET_SECONDS)
        except AssertionError:
            raise AssertionError(f"not at rest: {self._unsettled()}") from None

    def _unsettled(self) -> Sequence[Any]:
        operations = self.rows("SELECT kind, subject, state, attempts FROM operations WHERE finished_at IS NULL")
        agents = self.rows("SELECT id, state, reason FROM agents WHERE state <> 'running' OR deleted")
        without = self.agents() ^ self.containers().keys()
        return [*operations, *agents, *without]


async def _prepare(server: RunningServer) -> dict[str, Any]:
    key = server.key()
    agent = (await server.client(key).post("/v0/agents", json={"name": "a"})).json()["agent"]
    return {"key": key, "agent": agent["agentId"], "token": agent["gatewayToken"], "port": server.port}
