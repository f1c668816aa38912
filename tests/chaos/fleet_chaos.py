"""`make chaos-fleet`: python -m tests.chaos.fleet_chaos SECONDS FAKES HERMES [SEED]. Servers die while clients work.

Every `_KILL_SECONDS` a server is killed and started again. Once, one is paused, and one is cut off from the database,
each for a minute, or a fifth of the run if that is shorter. At the end a Docker host ends for good. Then everything
that was acknowledged is there, no task ran twice, no agent has two containers, and every agent of a living host
answers, through every living server, within a minute.
"""

import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roost.core import log
from tests.chaos.fleet import CLUSTER_SERVERS, DockerServer, Fleet, FleetServer, run_fleet
from tests.chaos.fleet_load import Client, FleetLoad, Ledger
from tests.journeys.server_process import until

DOCKER_HOSTS = 2
_KILL_SECONDS, _TROUBLE_SECONDS, _ANSWER_SECONDS = 20.0, 60.0, 60.0
_CLIENTS, _HANDS = 8, 2
_TRIES = 3  # a gateway has to answer in time, which a machine that starts hundreds may miss


def run_chaos(folder: Path, seconds: float, fakes: int, hermes: int, seed: int) -> Mapping[str, Any]:
    """Return what was done and measured. Raises AssertionError for anything that must not happen."""
    chance = random.Random(seed)
    with run_fleet(folder, DOCKER_HOSTS if hermes else 0) as fleet:
        agents = _create_agents(fleet, fakes, hermes)
        load = FleetLoad(fleet, agents, seed)
        load.start(_CLIENTS)
        try:
            troubles = _disturb(fleet, load, seconds, chance)
        finally:
            load.stop()
        gone = _end_docker_host(fleet)
        living = [agent for agent in agents if agent["server"] not in gone]
        slowest = _check_answers(fleet, living)
        assert not load.faults, load.faults[:5]
        checked = _check_ledger(fleet, load.ledger, {agent["agentId"]: agent for agent in living})
        return {
            "troubles": dict(troubles),
            "answers": dict(sorted(load.ledger.answers.items())),
            "checked": checked,
            "seconds until all agents answered": round(slowest, 1),
        }


def _create_agents(fleet: Fleet, fakes: int, hermes: int) -> Sequence[dict[str, Any]]:
    """Create agents at all servers, a few at a time."""
    hosts = fleet.servers[CLUSTER_SERVERS:]
    places = [fleet.servers[number % CLUSTER_SERVERS] for number in range(fakes)]
    places += [hosts[number % len(hosts)] for number in range(hermes)]

    def create(server: FleetServer) -> dict[str, Any]:
        with Client(fleet, server) as client:
            client.wait_longer()
            for _ in range(_TRIES):
                answer = client.send("POST", "/v0/agents", json={"name": "a", "engine": server.engine})
                if answer.is_success:
                    return {**answer.json()["agent"], "server": server.name}
                client.send("DELETE", f"/v0/agents/{answer.json()['agent']['agentId']}")
        raise AssertionError(f"no agent starts, not even before the first trouble: {answer.text}")

    hands = ThreadPoolExecutor(_HANDS)
    try:
        return list(hands.map(create, places))
    finally:
        hands.shutdown(cancel_futures=True)


def _disturb(fleet: Fleet, load: FleetLoad, seconds: float, chance: random.Random) -> Counter[str]:
    """Kill, pause and cut off servers until the time is over; all of them work then."""
    begun, done = time.monotonic(), Counter[str]()
    trouble_seconds = min(_TROUBLE_SECONDS, seconds / 5)
    kill_seconds = min(_KILL_SECONDS, seconds / 5)
    plan = [("paused", _paused, 0.2), ("cut off", _cut_off, 0.6)]
    while (passed := time.monotonic() - begun) < seconds or plan:
        print(f"{passed:.0f} s: {dict(done)}", file=sys.stderr, flush=True)
        if plan and passed > plan[0][2] * seconds:
            name, trouble, _ = plan.pop(0)
            with trouble(fleet, chance.choice(fleet.servers[:CLUSTER_SERVERS])):
                time.sleep(trouble_seconds)  # the length of the trouble
        else:
            name = "killed"
            victim = chance.choice(fleet.servers)
            victim.kill()
            _check_containers(fleet)
            time.sleep(chance.uniform(0, 2))  # a random time until somebody starts it again
            victim.start()
            time.sleep(max(0.0, kill_seconds - (time.monotonic() - begun - passed)))  # the pace of the kills
        done[name] += 1
        assert not load.faults, load.faults[:5]
        _check_containers(fleet)
    return done


@contextmanager
def _paused(_: Fleet, server: FleetServer) -> Iterator[None]:
    server.is_usable = False
    server.pause()
    try:
        yield
    finally:
        server.resume()
        server.is_usable = True


@contextmanager
def _cut_off(fleet: Fleet, server: FleetServer) -> Iterator[None]:
    fleet.cut_off(server)
    try:
        yield
    finally:
        fleet.reconnect(server)


def _check_containers(fleet: Fleet) -> None:
    """Check that no agent has two containers, wherever they are."""
    places = [fleet.servers[0], *fleet.servers[CLUSTER_SERVERS:]]
    found = sum((server.count_containers() for server in places), Counter[str]())
    assert not (twice := [agent for agent, count in found.items() if count > 1]), f"two containers: {twice}"


def _end_docker_host(fleet: Fleet) -> set[str]:
    """End one Docker host for good, and return its name."""
    hosts = [server for server in fleet.servers if isinstance(server, DockerServer)]
    if not hosts:
        return set()
    hosts[0].end_host()
    fleet.servers.remove(hosts[0])
    return {hosts[0].name}


def _check_answers(fleet: Fleet, agents: Sequence[dict[str, Any]]) -> float:
    """Wait until every agent answers through every server; return the seconds."""
    begun = time.monotonic()

    def wait(agent: dict[str, Any]) -> None:
        for server in fleet.servers:
            with Client(fleet, server) as client:
                until(lambda client=client: client.answers(agent), _ANSWER_SECONDS, every=0.5)

    with ThreadPoolExecutor(_HANDS) as hands:
        list(hands.map(wait, agents))
    passed = time.monotonic() - begun
    assert passed <= _ANSWER_SECONDS, f"{passed:.0f} s until all agents answered"
    return passed


def _check_ledger(fleet: Fleet, ledger: Ledger, living: Mapping[str, dict[str, Any]]) -> Mapping[str, int]:
    """Check that everything acknowledged is there, and that tasks ran once at most; count what was checked."""
    checked = Counter[str]()
    with Client(fleet, fleet.servers[0]) as client:
        client.wait_longer()
        for (agent, path), possible in ledger.files.items():
            if agent in living:
                found = client.send("GET", f"/v0/agents/{agent}/files/content", params={"path": path})
                assert ("" if found.status_code == 404 else found.text) in possible, f"{agent} {path}: {found.text}"
                checked["files"] += 1
        for agent, cids in ledger.snapshots.items():
            if agent in living:
                checked["snapshots"] += len(cids)
                known = _list_snapshots(client, agent)
                assert cids <= known, f"{agent} lost snapshots {cids - known}"
        for content, file_id in ledger.uploads.items():
            found = client.send("GET", f"/v3/files/private/{file_id}", "api.localhost")
            assert found.json()["data"]["size"] == len(content), found.text
            checked["uploads"] += 1
        for agent, names in ledger.tasks.items():
            if agent in living:
                runs = _count_runs(client, agent)
                assert runs.keys() >= names, f"{agent} lost tasks {names - runs.keys()}"
                assert max(runs.values(), default=0) <= 1, f"{agent} ran a task twice: {runs}"
                checked["tasks"] += len(names)
    return dict(checked)


def _list_snapshots(client: Client, agent: str) -> set[str]:
    found, page, more = set[str](), 1, True
    while more:
        answer = client.send("GET", f"/v0/agents/{agent}/snapshots", params={"page": page}).json()
        found |= {snapshot["snapshotCid"] for snapshot in answer["snapshots"]}
        more, page = bool(answer["snapshots"]), page + 1
    return found


def _count_runs(client: Client, agent: str) -> Mapping[str, int]:
    """Count the runs of each task, by its name."""
    path = f"/v0/agents/{agent}/tasks"
    tasks = client.send("GET", path, params={"includeDisabled": "true"}).json()["tasks"]
    return {task["name"]: len(client.send("GET", f"{path}/{task['id']}/runs").json()["runs"]) for task in tasks}


def main(seconds: float, fakes: int, hermes: int, seed: int = 7) -> None:
    print(f"seed {seed}", flush=True)
    log.configure_logging("error")
    with tempfile.TemporaryDirectory() as folder:
        for name, found in run_chaos(Path(folder), seconds, fakes, hermes, seed).items():
            print(f"{name}: {found}")


if __name__ == "__main__":
    handler: Callable[..., Any] = signal.default_int_handler
    signal.signal(signal.SIGTERM, handler)  # ends the processes, like Ctrl-C
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
