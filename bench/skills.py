"""Time from the request that attaches a skill to a running agent until the agent's engine lists it."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2 as httpx

from bench.row import Row
from tests.journeys.server_process import ServerProcess, until, up

_ENGINES = {"hermes": "Hermes", "openclaw": "OpenClaw"}
_ROUNDS = 9


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server, server.client() as client:
        for engine, label in _ENGINES.items():
            yield Row(
                f"attach a skill until {label} lists it, p50", _attach_each(server, client, engine), "s", goal="<= 2 s"
            )


def _attach_each(server: ServerProcess, client: httpx.Client, engine: str) -> Sequence[float]:
    """Return the seconds of some attachments, each of another skill; a skill is detached before the next one."""
    agent = server.create("bench", engine)["agentId"]
    path = f"/v0/agents/{agent}/skills"
    times: list[float] = []
    for number in range(_ROUNDS):
        skill = _register(client, f"{engine}-{number}")
        began = time.perf_counter()
        client.post(path, json={"skillCids": [skill]}).raise_for_status()
        until(lambda: _is_loaded(client, path), every=0.01)
        times.append(time.perf_counter() - began)
        client.delete(f"{path}/{skill}").raise_for_status()
    client.delete(f"/v0/agents/{agent}").raise_for_status()
    return times


def _register(client: httpx.Client, name: str) -> str:
    text = f"---\nname: {name}\ndescription: Counts the words of a text file.\n---\n\nRun `wc -w`.\n"
    files = [("file", (f"{name}/SKILL.md", text.encode()))]
    files += [("file", (f"{name}/references/{part}.md", b"Words.\n" * 500)) for part in range(10)]
    return client.post("/v0/skills", files=files).raise_for_status().json()["skill"]["skillId"]


def _is_loaded(client: httpx.Client, path: str) -> bool:
    return all(one["loaded"] for one in client.get(path).raise_for_status().json()["skills"])
