"""A server whose agents are in a Docker Engine, which can be killed, too."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roost.drivers.runtime.contract import Runtime
from tests.chaos.deployment import Deployment
from tests.conformance.runtimes import make_docker_runtime
from tests.journeys.server_process import until
from tests.support.docker_engine import DOCKER_SOCKET, DockerEngine


class DockerDeployment(Deployment):
    """The engine is a process of this one, with all its files in the folder."""

    def __init__(self, folder: Path) -> None:
        self._docker = DockerEngine(folder / "engine")
        os.environ[DOCKER_SOCKET] = str(self._docker.socket)
        super().__init__(folder)

    def make_runtime(self, data: Path) -> Runtime:
        return make_docker_runtime(data, lambda _: {})

    def other_victims(self) -> Mapping[str, Callable[[], None]]:
        return {"engine": self._restart_engine}

    def _restart_engine(self) -> None:
        self._docker.kill()
        self._docker.start()

    def kill_container(self, agent_id: str) -> None:
        if pid := self.containers().get(agent_id):
            os.kill(pid, signal.SIGKILL)
            until(lambda: self.containers().get(agent_id) != pid)

    def containers(self) -> Mapping[str, int]:
        found = {container["Labels"]["roost.agent"]: container["Id"] for container in self._list(running=True)}
        states = {agent_id: self._state(container) for agent_id, container in found.items()}
        return {agent_id: state["Pid"] for agent_id, state in states.items() if state.get("Running")}

    def check_owners(self) -> None:
        agents = self.agents()
        owners = Counter(container["Labels"]["roost.agent"] for container in self._list())
        assert owners == dict.fromkeys(agents, 1), "containers of no agent, or two of one"
        assert self._volumes().keys() == {(agent, name) for agent in agents for name in ("workspace", "home")}

    def end(self) -> None:
        self.kill_server()
        self._docker.stop()

    def workspaces(self) -> Mapping[str, Path]:
        return {agent: path for (agent, name), path in self._volumes().items() if name == "workspace"}

    def _list(self, *, running: bool = False) -> Sequence[Mapping[str, Any]]:
        query = "containers/json" if running else "containers/json?all=1"
        return [found for found in self._docker.get(query) if "roost.agent" in found["Labels"]]

    def _state(self, container: str) -> Mapping[str, Any]:
        """Return the state of a container, nothing of one that is gone."""
        try:
            return self._docker.get(f"containers/{container}/json")["State"]
        except subprocess.CalledProcessError:
            return {}

    def _volumes(self) -> Mapping[tuple[str, str], Path]:
        """Return the folders of the volumes of agents, by agent and what they are for."""
        found = self._docker.get("volumes")["Volumes"] or ()
        return {
            (volume["Labels"]["roost.agent"], volume["Name"].rpartition("-")[2]): Path(volume["Mountpoint"])
            for volume in found
            if "roost.agent" in (volume["Labels"] or {})
        }
