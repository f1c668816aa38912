"""Agents in a real Docker Engine, and `kill -9` of the server, of the engine, and of a container."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from roost.config import load_settings
from tests.journeys.server_process import ServerProcess, keep_up, kill_during_creates, until
from tests.support.docker_engine import IMAGE, DockerEngine

pytestmark = [pytest.mark.engine, pytest.mark.docker, pytest.mark.container, pytest.mark.timeout(400)]

_COPY_SECONDS = 240  # of an engine into volumes, by the first of these servers


@contextmanager
def serve(folder: Path, engine: DockerEngine, name: str = "hermes") -> Iterator[ServerProcess]:
    """Run a server that has one engine only, because each is copied to Docker."""
    docker = {"ROOST_RUNTIME": "docker", "ROOST_DOCKER_SOCKET": str(engine.socket), "ROOST_DOCKER_IMAGE": IMAGE}
    docker["ROOST_OTHER_RUNTIME"] = "bwrap"
    docker["ROOST_ENGINES"] = str(folder / "engines")
    installed = load_settings({"ROOST_DATA": str(folder)}).engines
    (folder / "engines").mkdir()
    for part in ("hermes",) if name == "hermes" else ("node", "openclaw", "openclaw-cache"):
        (folder / "engines" / part).symlink_to(installed / part)
    with keep_up(ServerProcess(folder / "data", "--no-first-agent", **docker), _COPY_SECONDS) as server:
        yield server


@pytest.mark.parametrize("name", ["hermes", "openclaw"])
def test_an_agent_answers_and_its_files_outlive_its_container(
    tmp_path: Path, docker_engine: DockerEngine, name: str
) -> None:
    with serve(tmp_path, docker_engine, name) as server:
        assert "containers start" in server.roost("doctor").stdout
        agent = server.create("a", name)
        assert "stand-in" in chat(server, agent)
        assert server.roost("exec", agent["agentId"], "--", "sh", "-c", "echo kept > file").returncode == 0
        before = containers(docker_engine)
        assert server.stop() == 0
        assert not containers(docker_engine)
        server.start()
        until(lambda: server.agents()[0]["status"] == "running")
        assert containers(docker_engine) != before
        assert "stand-in" in until(lambda: chat(server, agent))
        assert server.roost("exec", agent["agentId"], "--", "cat", "file").stdout == "kept\n"
        with server.client() as client:
            client.delete(f"/v0/agents/{agent['agentId']}").raise_for_status()
        until(lambda: not containers(docker_engine))
        until(lambda: not volumes(docker_engine))


def test_an_agent_moves_to_bwrap_and_back(tmp_path: Path, docker_engine: DockerEngine) -> None:
    with serve(tmp_path, docker_engine) as server:
        agent = server.create("a", "hermes")
        name = agent["agentId"]
        assert server.roost("exec", name, "--", "sh", "-c", "echo kept > file; echo too > ~/other").returncode == 0
        for other, volumes_left in (("bwrap", False), ("docker", True)):
            moved = server.roost("move", name, "--to", other)
            assert moved.returncode == 0, moved.stderr
            assert (name in containers(docker_engine), bool(volumes(docker_engine))) == (volumes_left, volumes_left)
            assert (name in server.warden_pids()) != volumes_left
            assert server.roost("exec", name, "--", "sh", "-c", "cat file ~/other").stdout == "kept\ntoo\n"
            assert "stand-in" in until(lambda: chat(server, agent))
            server.kill()
            server.start()
            assert "stand-in" in until(lambda: chat(server, agent))
        docker_engine.kill()
        refused = server.roost("move", name, "--to", "bwrap")
        docker_engine.start()
        assert refused.returncode
        assert "stand-in" in until(lambda: chat(server, agent))


@pytest.mark.parametrize("name", ["hermes", "openclaw"])
def test_an_agent_survives_the_server_and_the_engine_and_comes_back_after_its_own_end(
    tmp_path: Path, docker_engine: DockerEngine, name: str
) -> None:
    with serve(tmp_path, docker_engine, name) as server:
        agent = server.create("a", name)
        first = containers(docker_engine)

        server.kill()
        server.start()
        assert containers(docker_engine) == first
        assert "stand-in" in chat(server, agent)

        docker_engine.kill()
        docker_engine.start()
        assert containers(docker_engine) == first
        assert "stand-in" in until(lambda: chat(server, agent))

        os.kill(first[agent["agentId"]], signal.SIGKILL)
        until(lambda: containers(docker_engine).get(agent["agentId"], 0) not in {0, first[agent["agentId"]]})
        assert "stand-in" in until(lambda: chat(server, agent))


def test_a_server_that_is_killed_while_it_creates_leaves_no_container_without_an_agent(
    tmp_path: Path, docker_engine: DockerEngine
) -> None:
    with serve(tmp_path, docker_engine) as server:
        kill_during_creates(server, 4, 1.5)
        assert set(containers(docker_engine)) == {agent["agentId"] for agent in server.agents()}


def chat(server: ServerProcess, agent: Mapping[str, Any]) -> str:
    return server.roost("chat", agent["agentId"], "Are you there?").stdout


def containers(engine: DockerEngine) -> dict[str, int]:
    """Return the pid of each agent's container, also of one that does not run (0)."""
    found: dict[str, int] = {}
    for container in engine.get("containers/json?all=1"):
        if agent_id := container["Labels"].get("roost.agent"):
            with suppress(subprocess.CalledProcessError):  # it was removed since it was listed
                found[agent_id] = engine.get(f"containers/{container['Id']}/json")["State"]["Pid"]
    return found


def volumes(engine: DockerEngine) -> list[str]:
    """Return the names of the volumes of agents."""
    found = engine.get("volumes")["Volumes"] or ()
    return [volume["Name"] for volume in found if "roost.agent" in (volume["Labels"] or {})]
