"""The server as a user runs it: a `roost up` process, used by the command line and over HTTP."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.support.server import NO_AUTHORITIES, free_ballast

ROOST = [sys.executable, "-m", "roost"]
DEADLINE = 90.0


def until(condition: Callable[[], Any], deadline: float = DEADLINE, every: float = 0.05) -> Any:
    """Return the first true value of `condition`; fail after the timeout."""
    end = time.monotonic() + deadline
    while not (value := condition()):
        assert time.monotonic() < end, (
            f"{getattr(condition, '__qualname__', condition)} did not come true within {deadline} s"
        )
        time.sleep(every)
    return value


class ServerProcess:
    """A `roost up` on one data folder; can be killed and started again."""

    def __init__(self, data: Path, *flags: str, program: Sequence[str] = ROOST, **environment: str) -> None:
        self.data = data
        self._program = program
        self._flags = flags
        self._environment = {**os.environ, "ROOST_QUOTA_FREE": "20", **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self.output = data.with_suffix(".out")

    def start(self, deadline: float = DEADLINE) -> None:
        session = self.data / "cli.json"
        before = session.stat().st_mtime_ns if session.exists() else 0
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._program, "up", "--port", "0", "--data", str(self.data), *self._flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
            )
        until(lambda: self._ended() or (session.exists() and session.stat().st_mtime_ns != before), deadline)
        until(lambda: self._ended() or self._answers(), deadline)
        assert self._process.poll() is None, self.text()

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Press Ctrl-C; return the exit code. A server that does not end is killed, so that it does not run on."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def text(self) -> str:
        return self.output.read_text()

    @property
    def session(self) -> dict[str, str]:
        return json.loads((self.data / "cli.json").read_text())

    @property
    def url(self) -> str:
        return self.session["url"]

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.session['token']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False, verify=NO_AUTHORITIES)

    def agent_client(self, agent: dict[str, Any]) -> httpx.Client:
        port = httpx.URL(self.url).port
        headers = {
            "Authorization": f"Bearer {agent['gatewayToken']}",
            "Host": f"{agent['agentId']}.agents.localhost:{port}",
        }
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False, verify=NO_AUTHORITIES)

    def roost(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the command line against this server."""
        command = [*ROOST, *arguments[:2], "--data", str(self.data), *arguments[2:]]
        if arguments[0] == "chat":
            command = [*ROOST, "chat", "--data", str(self.data), *arguments[1:]]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=180, env=self._environment, check=False, **options
        )

    def agents(self) -> list[dict[str, Any]]:
        with self.client() as client:
            return client.get("/v0/agents").json()["agents"]

    def create(self, name: str, engine: str) -> dict[str, Any]:
        with self.client() as client:
            answer = client.post("/v0/agents", json={"name": name, "engine": engine})
            assert answer.status_code == 201, answer.text
            return answer.json()["agent"]

    def warden_pids(self) -> dict[str, int]:
        """Return the pid of each agent's warden on the host."""
        return dict(_wardens(self.data))

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", trust_env=False, verify=NO_AUTHORITIES).status_code == 200
        except httpx.HTTPError:
            return False

    def _ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None


def kill_during_creates(server: ServerProcess, turns: int, seconds: float) -> None:
    """Kill the server up to `seconds` after a request to create an agent, and start it again, for each turn."""
    moments = random.Random(7)
    for turn in range(turns):
        thread = threading.Thread(target=_create_and_be_cut_off, args=(server, f"n{turn}"))
        thread.start()
        time.sleep(moments.uniform(0.0, seconds))  # the time of the kill, not a wait
        server.kill()
        thread.join()
        server.start()
    until(lambda: all(agent["status"] == "running" for agent in server.agents()), 120)
    names = [agent["name"] for agent in server.agents()]
    assert len(names) == len(set(names))


def _create_and_be_cut_off(server: ServerProcess, name: str) -> None:
    with suppress(httpx.HTTPError):
        server.create(name, "hermes")


@contextmanager
def up(data: Path, *flags: str, program: Sequence[str] = ROOST, **environment: str) -> Iterator[ServerProcess]:
    """Run a server; stop it at the end, with the containers that a killed server left."""
    with keep_up(ServerProcess(data, *flags, program=program, **environment)) as server:
        yield server


@contextmanager
def keep_up(server: ServerProcess, deadline: float = DEADLINE) -> Iterator[ServerProcess]:
    """As `up`, where the first start takes longer."""
    server.start(deadline)
    try:
        yield server
    finally:
        if server._ended():
            server.start()  # adopts the containers of the killed server, which are then stopped cleanly
        server.stop()
        free_ballast(server.data)


def _wardens(data: Path) -> Iterator[tuple[str, int]]:
    """Return the live processes from the records of the containers."""
    for record in data.glob("run/*/container.json"):
        found = json.loads(record.read_text())
        pid = found["warden"]["pid"]
        if Path(f"/proc/{pid}").exists():
            yield record.parent.name, pid
