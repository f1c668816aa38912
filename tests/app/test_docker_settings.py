"""Settings that name Docker: what `roost doctor` and `roost up` say where there is none, and where there is."""

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

from roost import config
from roost.agents.lifecycle.system.model import CheckResult
from roost.agents.registry.agent_containers import AgentContainers
from roost.app.doctor import run_checks
from roost.app.drivers import create_drivers, create_runtime
from roost.settings import BadSettings
from tests.journeys.server_process import ROOST
from tests.support.docker_engine import DOCKER_SOCKET, IMAGE

_NOBODY = 65534


def docker_check(folder: Path, **variables: str) -> list[CheckResult]:
    found = config.load_settings({"ROOST_DATA": str(folder), "ROOST_RUNTIME": "docker", **variables})
    return [row for row in run_checks(found) if row["part"] != "engines"]


def test_without_an_engine_the_reason_and_the_remedy_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    runtime = next(
        row for row in docker_check(tmp_path, ROOST_DOCKER_SOCKET=str(path)) if row["part"] == "runtime docker"
    )
    advice = "there is no such socket: start Docker, or set `docker_socket` to its socket"
    assert (runtime["status"], runtime["detail"]) == ("fail", f"Docker cannot be reached at {path}: {advice}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        runtime = next(
            row for row in docker_check(tmp_path, ROOST_DOCKER_SOCKET=str(path)) if row["part"] == "runtime docker"
        )
    assert "nothing listens there: start Docker" in runtime["detail"]


def test_a_server_without_an_engine_does_not_start(tmp_path: Path) -> None:
    variables = {"ROOST_RUNTIME": "docker", "ROOST_DOCKER_SOCKET": str(tmp_path / "docker.sock")}
    refused = subprocess.run(
        [*ROOST, "up", "--no-first-agent", "--port", "0", "--data", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **variables},
    )
    assert refused.returncode
    assert "start Docker" in " ".join(refused.stderr.split())


def test_a_socket_without_permission_says_who_may_use_it(tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    variables = {"ROOST_DATA": str(tmp_path), "ROOST_RUNTIME": "docker", "ROOST_DOCKER_SOCKET": str(path)}
    runtime = create_runtime(config.load_settings(variables), [])
    is_root = os.geteuid() == 0
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0)
        try:
            if is_root:
                os.seteuid(_NOBODY)
            found = asyncio.run(runtime.probe())
        finally:
            if is_root:
                os.seteuid(0)
    advice = "this user may not use it: add it to the group `docker`, or use rootless Docker or Podman"
    assert (found.usable, found.error) == (False, f"Docker cannot be reached at {path}: {advice}")


@pytest.mark.parametrize(("runtime", "other"), [("bwrap", "docker"), ("docker", "bwrap")])
async def test_a_server_knows_the_runtimes_that_its_settings_name(tmp_path: Path, runtime: str, other: str) -> None:
    variables = {"ROOST_DATA": str(tmp_path), "ROOST_RUNTIME": runtime}
    assert [one.name for one in create_drivers(config.load_settings(variables)).runtimes] == [runtime]
    drivers = create_drivers(config.load_settings({**variables, "ROOST_OTHER_RUNTIME": other}))
    assert [one.name for one in drivers.runtimes] == [runtime, other]
    assert list(AgentContainers(drivers.runtimes).assignments.by_name) == [runtime, other]


def test_the_second_runtime_is_another_one(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="other_runtime: must be another one than runtime, got bwrap for both"):
        config.load_settings({"ROOST_DATA": str(tmp_path), "ROOST_OTHER_RUNTIME": "bwrap"})


@pytest.mark.docker
@pytest.mark.container
def test_the_probe_of_a_real_container_is_told(tmp_path: Path) -> None:
    settings = {"ROOST_DOCKER_SOCKET": os.environ[DOCKER_SOCKET], "ROOST_DOCKER_IMAGE": IMAGE}
    found = {row["part"]: row for row in docker_check(tmp_path, **settings)}
    assert found["runtime docker"]["detail"] == "containers start"
    assert found["namespaces"]["detail"] == "shared with the host: user"  # this engine has no user namespaces
    for name in ("network", "capabilities", "seccomp", "memory", "pids"):
        assert found[name]["status"] == "ok", found[name]
    assert found["egress-by-name"]["detail"].startswith("programs without proxy support go")
    assert found["own-kernel"]["detail"].startswith("OCI runtime runc shares")
    unknown = {row["part"]: row for row in docker_check(tmp_path, ROOST_DOCKER_OCI_RUNTIME="nothing", **settings)}
    assert "nothing" in unknown["runtime docker"]["detail"]
