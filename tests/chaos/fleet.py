"""Many servers of one database and one bucket: some serve a fake cluster together, each other one a Docker Engine."""

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psycopg
from sqlalchemy.engine import make_url

from roost.config import load_settings
from roost.drivers.runtime.kubernetes.plan import AGENT
from tests.conformance.s3_server import create_client, s3_server
from tests.journeys.server_process import ServerProcess
from tests.support.acme import find_free_ports
from tests.support.databases import postgres_copy, run_postgres
from tests.support.docker_engine import IMAGE, DockerEngine
from tests.support.kubernetes.cluster import ADMIN_TOKEN
from tests.support.server import NO_AUTHORITIES, free_ballast

CLUSTER_SERVERS = 3
_PROCESSES = [sys.executable, "-m", "tests.chaos.cluster_processes"]
_START_SECONDS = 300.0


class FleetServer(ABC):
    """A server that can be killed, paused and started again. role: its own user of the database."""

    engine: str
    """Engine of the agents that are created there."""

    def __init__(self, name: str) -> None:
        self.name = self.role = name
        self.is_usable = False
        """Whether a request may go there: it runs and is not paused or cut off."""

    @property
    @abstractmethod
    def port(self) -> int: ...

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def count_containers(self) -> Counter[str]:
        """Count the containers of each agent that the server, or servers like it, may start."""

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class ClusterServer(FleetServer):
    engine = "fake"

    def __init__(self, name: str, folder: Path, kubeconfig: Path, api_url: str, environment: Mapping[str, str]) -> None:
        super().__init__(name)
        self._folder, self._kubeconfig, self._api_url = folder, kubeconfig, api_url
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[str] | None = None
        self._told: dict[str, Any] = {}

    @property
    def port(self) -> int:
        return self._told["port"]

    @property
    def key(self) -> str:
        return self._told["key"]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._folder.mkdir(exist_ok=True)
        command = [*_PROCESSES, "server", str(self._folder), str(self._kubeconfig)]
        with self._folder.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=self._environment, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._folder.with_suffix(".log").read_text()[-2000:]
        self._told = json.loads(line)
        self.is_usable = True

    def kill(self) -> None:
        self.is_usable = False
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self.is_usable = False
        if self._process is not None and self._process.poll() is None:
            self._process.communicate(timeout=120)
        free_ballast(self._folder)

    def count_containers(self) -> Counter[str]:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        url = f"{self._api_url}/api/v1/namespaces/agents/pods"
        pods = httpx.get(url, headers=headers, trust_env=False, verify=NO_AUTHORITIES, timeout=60).json()["items"]
        return Counter(pod["metadata"]["labels"].get(AGENT, "") for pod in pods)


class DockerServer(FleetServer):
    engine = "hermes"

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(name)
        self.docker = DockerEngine(folder / "engine")
        (folder / "engines").mkdir()
        (folder / "engines/hermes").symlink_to(load_settings({"ROOST_DATA": str(folder)}).engines / "hermes")
        docker = {
            "ROOST_RUNTIME": "docker",
            "ROOST_DOCKER_SOCKET": str(self.docker.socket),
            "ROOST_DOCKER_IMAGE": IMAGE,
        }
        docker |= {"ROOST_OTHER_RUNTIME": "bwrap", "ROOST_ENGINES": str(folder / "engines")}
        self._server = ServerProcess(folder / "data", "--no-first-agent", **docker, **environment)

    @property
    def port(self) -> int:
        port = httpx.URL(self._server.url).port
        assert port is not None
        return port

    @property
    def pid(self) -> int:
        return self._server.pid

    def start(self) -> None:
        self._server.start(_START_SECONDS)
        self.is_usable = True

    def kill(self) -> None:
        self.is_usable = False
        self._server.kill()

    def stop(self) -> None:
        self.is_usable = False
        if not self._server._ended():
            self._server.kill()
        self.docker.stop()
        free_ballast(self._server.data)

    def end_host(self) -> None:
        """End the server and its engine, as a machine that breaks does."""
        self.kill()
        self.docker.stop()

    def count_containers(self) -> Counter[str]:
        found = self.docker.get("containers/json")
        return Counter(one["Labels"]["roost.agent"] for one in found if "roost.agent" in one["Labels"])


class Fleet:
    """All servers, and what disturbs them: `cut_off` and `reconnect` refuse the database to one."""

    def __init__(self, servers: Sequence[FleetServer], database: str, key: str) -> None:
        self.servers, self.database, self.key = list(servers), database, key

    def cut_off(self, server: FleetServer) -> None:
        server.is_usable = False
        self._administer(f'ALTER ROLE "{server.role}" NOLOGIN')
        self._administer(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{server.role}'")

    def reconnect(self, server: FleetServer) -> None:
        self._administer(f'ALTER ROLE "{server.role}" LOGIN')
        server.is_usable = True

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def run_fleet(folder: Path, docker_hosts: int) -> Iterator[Fleet]:
    """Run three servers of a fake cluster, and others with an engine each."""
    with ExitStack() as stack:
        database = stack.enter_context(contextmanager(postgres_copy)(stack.enter_context(run_postgres()), "template0"))
        bucket = stack.enter_context(s3_server())
        create_client(bucket).create_bucket(Bucket="shared")
        shared = {"ROOST_BLOBS": "s3://shared/roost", "ROOST_KEK": "0" * 64, "ROOST_QUOTA_PAID": "10000"}
        shared |= {"AWS_ENDPOINT_URL": bucket, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        shared |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        cluster = subprocess.Popen(
            [*_PROCESSES, "cluster", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.callback(cluster.communicate)
        assert cluster.stdout is not None
        api_url = cluster.stdout.readline().strip()
        servers: list[FleetServer] = []
        names = [f"server-{number}" for number in range(CLUSTER_SERVERS + docker_hosts)]
        for name, port in zip(names, find_free_ports(len(names)), strict=True):
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute(f'CREATE ROLE "{name}" SUPERUSER LOGIN'.encode())
            own = {"ROOST_DATABASE_URL": make_url(database).set(username=name).render_as_string(hide_password=False)}
            own |= {"ROOST_PEER_ADDRESS": f"127.0.0.1:{port}", **shared}
            if len(servers) < CLUSTER_SERVERS:
                servers.append(ClusterServer(name, folder / name, folder / "kubeconfig", api_url, own))
            else:
                (folder / name).mkdir()
                servers.append(DockerServer(name, folder / name, own))
            stack.callback(servers[-1].stop)
            servers[-1].start()
        first = servers[0]
        assert isinstance(first, ClusterServer)
        yield Fleet(servers, database, first.key)
