"""Measure how costs grow, and write `docs/reference/scale.md`: `make bench-scale`.

`python -m bench.scale SIZE...` measures some sizes: those up to 10,000 are numbers of agents, those from 1,000 on are
numbers of files. Only a run of all sizes writes the page.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx2 as httpx

from bench.figures import format_machine
from bench.processes import cpu_seconds
from bench.report import describe_machine
from bench.scale.bulk import open_in_bulk
from bench.scale.cluster import measure_cluster
from bench.scale.curves import PAGE, Curve, Kind, write_page
from bench.scale.records import add_agents, add_files

_SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_MOST_AGENTS, _FEWEST_FILES = 10_000, 1_000
_RUNS, _TRIES, _RUN_SECONDS, _REQUESTS = 3, 5, 0.2, 100
_QUIET_SECONDS, _QUIET_TRIES = 1.0, 90
_ROOT = Path(__file__).parents[2]
NOTES = {
    "list of all agents": "16,384 agents and their JSON are remembered; with 4,096, 10,000 took 252 ms.",
    "reconcile: look into each container after the start": "Where it took over 5 seconds, the watches of "
    "workspaces began meanwhile and were counted; they have a row.",
    "start of the server": "The first reads of all packs come after it.",
    "reconcile: periodic check": "16 tasks look at all agents, instead of a task for each. Ten times the agents make "
    "10.2 times the calls of functions; each takes longer, probably because the processor's caches are too small.",
    "watch each workspace": "Ten full garbage collections took half the time with 10,000; they are ten times as seldom "
    "now. Connections and their tasks stay open, so what was said of the check is true here, too.",
    "reconcile: start each agent": "Each start looked for its operation among all that there ever were; an index finds "
    "it now.",
}
"""Why curves are as they are, and what was repaired."""
_Add = Callable[[str, Kind, float], None]


class Server:
    """The process of `bench/scale/server.py`; `figures` are those of its last start."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.figures: dict[str, Any] = self._read()

    def restart(self) -> dict[str, Any]:
        self._ask("next")
        self.figures = self._read()
        return self.figures

    def check(self) -> float:
        """Return the seconds of a periodic check."""
        self._ask("check")
        return self._read()

    def client(self, host: str) -> httpx.Client:
        port, key = self.figures["port"], self.figures["key"]
        headers = {"Host": f"{host}:{port}", "Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120, trust_env=False)

    def measure(self, action: Callable[[], object], limit: int = _REQUESTS) -> float:
        """Return the seconds of processor time that the server takes for an action, in the best of some runs."""
        action()
        return min(self._measure_run(action, limit) for _ in range(_TRIES))

    def _measure_run(self, action: Callable[[], object], limit: int) -> float:
        began, count = cpu_seconds(self._process.pid), 0
        while count < limit and cpu_seconds(self._process.pid) - began < _RUN_SECONDS:
            action()
            count += 1
        return (cpu_seconds(self._process.pid) - began) / count

    def wait_until_quiet(self) -> None:
        """Wait until the server has no work left from its start. Raises TimeoutError."""
        for _ in range(_QUIET_TRIES):
            began = cpu_seconds(self._process.pid)
            time.sleep(_QUIET_SECONDS)
            if cpu_seconds(self._process.pid) - began < _QUIET_SECONDS / 20:
                return
        raise TimeoutError("the server did not become quiet")

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server ended; its log is above"
        return json.loads(line)


@contextmanager
def run_server(data: Path, *, starts: int = 1, present: bool = True) -> Iterator[Server]:
    argv = [sys.executable, "-m", "bench.scale.server", str(data), str(starts), str(int(present))]
    with data.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(
            argv, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    with process:
        try:
            yield Server(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # which ends it


class Curves:
    """Curves of one kind of what is stored, in the order of their first point."""

    def __init__(self, stored: str) -> None:
        self._stored = stored
        self.found: dict[str, Curve] = {}

    def add(self, size: int, name: str, kind: Kind, seconds: float) -> None:
        curve = self.found.setdefault(name, Curve(name, self._stored, kind, NOTES.get(name, "")))
        curve.points[size] = seconds * 1000
        print(f"{size:>9,} {self._stored}: {name}: {seconds * 1000:.3g} ms", flush=True)


def measure_agents(folder: Path, sizes: Sequence[int]) -> Iterator[Curve]:
    curves, before, data = Curves("agents"), 0, folder / "agents"
    for size in sizes:
        with open_in_bulk(data) as (connection, host_id, sealer):
            add_agents(connection, before + 1, size, host_id, sealer)
        before = size
        with run_server(data, starts=_RUNS, present=True) as server:
            starts = [server.figures, *(server.restart() for _ in range(_RUNS - 1))]
            add = partial(curves.add, size)
            add("start of the server, agents run", Kind.LINEAR, median(one["start"] for one in starts))
            looks = median(one["settled"] - one["start"] for one in starts)
            add("reconcile: look into each container after the start", Kind.LINEAR, looks)
            add("watch each workspace", Kind.LINEAR, median(one["watched"] for one in starts))
            add("reconcile: periodic check", Kind.LINEAR, min(server.check() for _ in range(_TRIES)))
            server.wait_until_quiet()
            with server.client("agents.localhost") as client:
                _measure_agent_requests(server, client, add)
        with run_server(data, present=False) as server:
            add("reconcile: start each agent", Kind.LINEAR, server.figures["settled"])
    yield from curves.found.values()


def _measure_agent_requests(server: Server, client: httpx.Client, add: _Add) -> None:
    made = list[str]()

    def create() -> None:
        agent = client.post("/v0/agents", json={"name": "new", "engine": "fake"}).raise_for_status().json()["agent"]
        made.append(agent["agentId"])

    add("list of all agents", Kind.LINEAR, server.measure(lambda: client.get("/v0/agents").raise_for_status()))
    add("create an agent", Kind.FLAT, server.measure(create, limit=8))
    add("one agent", Kind.FLAT, server.measure(lambda: client.get(f"/v0/agents/{made[0]}").raise_for_status()))
    for agent_id in made:
        client.delete(f"/v0/agents/{agent_id}").raise_for_status()


def measure_files(folder: Path, sizes: Sequence[int]) -> Iterator[Curve]:
    curves, before, data = Curves("files"), 0, folder / "files"
    for size in sizes:
        with open_in_bulk(data) as (connection, _, _):
            add_files(connection, before + 1, size)
        before = size
        with run_server(data, starts=_RUNS) as server:
            starts = [server.figures["start"], *(server.restart()["start"] for _ in range(_RUNS - 1))]
            add = partial(curves.add, size)
            add("start of the server", Kind.FLAT, median(starts))
            server.wait_until_quiet()
            with server.client("api.localhost") as api, server.client("uploads.localhost") as uploads:
                cid = _upload(uploads)["cid"]
                for name, (kind, query) in _LISTS.items():
                    read = partial(_read, api, "/v3/files/public?limit=10" + query.format(cid=cid))
                    add(name, kind, server.measure(read))
                add("upload", Kind.FLAT, server.measure(partial(_upload, uploads)))
    yield from curves.found.values()


_LISTS = {
    "list, first page": (Kind.FLAT, ""),
    "list of a group": (Kind.FLAT, "&group=group%200"),
    "search by CID": (Kind.LOGARITHMIC, "&cid={cid}"),
    "search by a keyvalue of a few": (Kind.LOGARITHMIC, "&keyvalues[batch]=b7"),
    "search by a keyvalue of all": (Kind.FLAT, "&keyvalues[kind]=bench"),
    "search by a name that many have": (Kind.FLAT, "&name=file"),
    "search by a name that none has": (Kind.LINEAR, "&name=absent"),
}


def _read(client: httpx.Client, path: str) -> None:
    client.get(path).raise_for_status()


def _upload(client: httpx.Client) -> dict[str, Any]:
    """Upload other content than ever before, and return the file."""
    form = {"file": ("new.txt", os.urandom(16).hex().encode()), "network": (None, "public")}
    return client.post("/v3/files", files=form).raise_for_status().json()["data"]


def main(arguments: Sequence[str]) -> int:
    sizes = sorted(map(int, arguments)) or _SIZES
    with tempfile.TemporaryDirectory(prefix="roost-scale-") as folder:
        curves = [
            *measure_agents(Path(folder), [size for size in sizes if size <= _MOST_AGENTS]),
            *measure_cluster(Path(folder), [size for size in sizes if size <= _MOST_AGENTS]),
            *measure_files(Path(folder), [size for size in sizes if size >= _FEWEST_FILES]),
        ]
    page = PAGE if tuple(sizes) == _SIZES else Path("build/scale.md")
    page.parent.mkdir(exist_ok=True)
    write_page(curves, f"{datetime.now(UTC):%Y-%m-%d}", format_machine(describe_machine()), page)
    print(page.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
