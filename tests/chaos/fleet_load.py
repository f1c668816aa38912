"""Clients of a fleet: they write, read and schedule at any server, and remember what was acknowledged."""

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import httpx2 as httpx

from tests.chaos.fleet import Fleet, FleetServer
from tests.support.server import NO_AUTHORITIES

_TIMEOUT = 20.0
_TASK_AHEAD = timedelta(seconds=8)
_MOST_TASKS = 100


@dataclass
class Ledger:
    """What clients know. files: the possible contents by agent and path, one where the last write was acknowledged."""

    files: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    snapshots: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    uploads: dict[str, str] = field(default_factory=dict)
    """CIDs by content."""
    tasks: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    answers: Counter[str] = field(default_factory=Counter)
    """Answers by operation and status, or kind of error."""


class FleetLoad:
    """Threads of clients. Each file has one writer, so what it may hold is known."""

    def __init__(self, fleet: Fleet, agents: Sequence[dict[str, Any]], seed: int) -> None:
        self.ledger, self.agents = Ledger(), list(agents)
        self._fleet, self._seed = fleet, seed
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.faults: list[str] = []
        """What must not happen."""

    def start(self, clients: int) -> None:
        for number in range(clients):
            self._threads.append(threading.Thread(target=self._run, args=(number,)))
            self._threads[-1].start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        chance = random.Random(f"{self._seed} {number}")
        operations: list[tuple[Callable[[Client, dict[str, Any], str], str], int]] = [
            (self._write, 6), (self._read, 6), (self._call, 6), (self._list, 2),
            (self._snapshot, 1), (self._upload, 2), (self._schedule, 1),
        ]  # fmt: skip
        kinds, weights = zip(*operations, strict=True)
        turn = 0
        while not self._is_over.is_set():
            server, agent = chance.choice(self._fleet.servers), chance.choice(self.agents)
            if not server.is_usable:
                self._is_over.wait(0.01)
                continue
            turn += 1
            (run,) = chance.choices(kinds, weights)
            with Client(self._fleet, server) as client:
                try:
                    outcome = run(client, agent, f"{number}-{turn}")
                except (httpx.HTTPError, OSError) as error:
                    outcome = type(error).__name__
            self.ledger.answers[f"{run.__name__.strip('_')} {outcome}"] += 1

    def _write(self, client: "Client", agent: dict[str, Any], token: str) -> str:
        key = (agent["agentId"], f"file-{token.partition('-')[0]}")
        known = self.ledger.files.get(key, {""})
        self.ledger.files[key] = known | {token}
        answer = client.send("PUT", f"/v0/agents/{key[0]}/files/content", params={"path": key[1]}, content=token)
        if answer.is_success:
            self.ledger.files[key] = {token}
        return str(answer.status_code)

    def _read(self, client: "Client", agent: dict[str, Any], token: str) -> str:
        key = (agent["agentId"], f"file-{token.partition('-')[0]}")
        possible = self.ledger.files.get(key, {""})
        answer = client.send("GET", f"/v0/agents/{key[0]}/files/content", params={"path": key[1]})
        if answer.status_code == 404 and "" not in possible:
            self.faults.append(f"{key} is lost: {answer.text}")
        if answer.is_success:
            if answer.text not in possible:
                self.faults.append(f"{key} has {answer.text!r}, not one of {possible}")
            self.ledger.files[key] = {answer.text}
        return str(answer.status_code)

    def _call(self, client: "Client", agent: dict[str, Any], _: str) -> str:
        return str(client.call_agent(agent).status_code)

    def _list(self, client: "Client", _: dict[str, Any], __: str) -> str:
        answer = client.send("GET", "/v0/agents", params={"limit": 100})
        return str(answer.status_code)

    def _snapshot(self, client: "Client", agent: dict[str, Any], _: str) -> str:
        answer = client.send("POST", f"/v0/agents/{agent['agentId']}/snapshots/sync")
        if answer.is_success:
            self.ledger.snapshots[agent["agentId"]].add(answer.json()["snapshotCid"])
        return str(answer.status_code)

    def _upload(self, client: "Client", _: dict[str, Any], token: str) -> str:
        files = [("file", (token, token.encode()))]
        answer = client.send("POST", "/v3/files", "uploads.localhost", files=files, data={"network": "private"})
        if answer.is_success:
            self.ledger.uploads[token] = answer.json()["data"]["id"]
        return str(answer.status_code)

    def _schedule(self, client: "Client", agent: dict[str, Any], token: str) -> str:
        if sum(map(len, self.ledger.tasks.values())) >= _MOST_TASKS:
            return "enough"
        body = {"name": token, "schedule": (datetime.now(UTC) + _TASK_AHEAD).isoformat(), "payload": f"Say {token}."}
        answer = client.send("POST", f"/v0/agents/{agent['agentId']}/tasks", json=body)
        if answer.is_success:
            self.ledger.tasks[agent["agentId"]].add(token)
        return str(answer.status_code)


class Client:
    """A client of one server, with the key of the tenant."""

    def __init__(self, fleet: Fleet, server: FleetServer) -> None:
        self._port, self._key = server.port, fleet.key
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{self._port}", timeout=_TIMEOUT, trust_env=False, verify=NO_AUTHORITIES
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def wait_longer(self) -> None:
        """Wait for what takes minutes on a busy machine."""
        self._client.timeout = 300

    def send(self, method: str, path: str, host: str = "agents.localhost", **options: Any) -> httpx.Response:
        headers = {"Host": f"{host}:{self._port}", "Authorization": f"Bearer {self._key}"}
        return self._client.request(method, path, headers=headers, **options)

    def call_agent(self, agent: dict[str, Any]) -> httpx.Response:
        """Ask an agent at its own address."""
        host = f"{agent['agentId']}.agents.localhost:{self._port}"
        headers = {"Host": host, "Authorization": f"Bearer {agent['gatewayToken']}"}
        return self._client.get("/v1/models", headers=headers)

    def answers(self, agent: dict[str, Any]) -> bool:
        with suppress(httpx.HTTPError):
            return self.call_agent(agent).is_success
        return False
