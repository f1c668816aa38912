"""`kill -9` of the server: nothing is lost or duplicated, running commands go on."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.journeys.server_process import kill_during_creates, until, up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]


@pytest.mark.parametrize("engine", ["hermes", "openclaw"])
def test_killed_while_an_agent_streams_an_answer(tmp_path: Path, engine: str) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        agent = server.create("a", engine)
        wardens = server.warden_pids()
        process = _detail(server, agent)["processId"]
        with pytest.raises(httpx.HTTPError):
            _stream_until(server, agent, pieces=3, then=server.kill)
        server.start()
        until(lambda: server.agents()[0]["status"] == "running")
        assert server.warden_pids() == wardens
        assert _detail(server, agent)["processId"] == process
        assert "stand-in" in until(lambda: server.roost("chat", agent["agentId"], "Still there?").stdout)


def test_a_start_is_ready_while_no_container_gets_processor_time(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        agents = [server.create(name, "hermes") for name in ("a", "b")]
        wardens = server.warden_pids()
        gateways = [_detail(server, agent)["processId"] for agent in agents]
        server.kill()
        frozen = [pid for warden in wardens.values() for pid in _descendants(warden)]
        assert len(frozen) >= 4
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            server.start()
            with server.client() as client:
                assert client.get("/readyz").status_code == 200
            assert {agent["status"] for agent in server.agents()} == {"running"}
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        assert server.warden_pids() == wardens
        assert [_detail(server, agent)["processId"] for agent in agents] == gateways
        assert "stand-in" in server.roost("chat", agents[0]["agentId"], "Still there?").stdout


def test_killed_at_any_point_of_a_create(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        kill_during_creates(server, 6, 1.0)
        agents = server.agents()
        assert set(server.warden_pids()) == {agent["agentId"] for agent in agents}
        ids = {agent["agentId"] for agent in agents}
        wardens = _wardens_in_process_table()
        (mark,) = {mark for agent, mark in wardens if agent in ids}
        assert sorted(agent for agent, theirs in wardens if theirs == mark) == sorted(ids)


def _descendants(root: int) -> list[int]:
    """Return a process and all below it."""
    found, parents = {root}, dict(_parents())
    while children := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= children
    return sorted(found)


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended
                yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def _stream_until(server, agent: dict, *, pieces: int, then: Callable[[], None]) -> None:
    with server.agent_client(agent) as own:
        model = own.get("/v1/models").json()["data"][0]["id"]
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "/slow 400"}]}
        with own.stream("POST", "/v1/chat/completions", json=body) as response:
            assert response.status_code == 200
            for line in response.iter_lines():
                pieces -= line.startswith("data:")
                if pieces == 0:
                    then()


def _detail(server, agent: dict) -> dict:
    with server.client() as client:
        return client.get(f"/v0/agents/{agent['agentId']}").json()


def _wardens_in_process_table() -> list[tuple[str, str]]:
    """Return the agent and the data folder's mark of every warden on this machine, without the records."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):
            program, config = path.read_bytes().split(b"\0")[6:8]
            if program == b"/run/warden/warden.pyc":
                told = json.loads(config)
                found.append((told["agent"], told["mark"]))
    return found
