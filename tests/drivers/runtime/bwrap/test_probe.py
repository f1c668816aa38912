from pathlib import Path
from typing import ClassVar

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.probe import machine_advice
from roost.drivers.runtime.bwrap.start import get_controllers
from roost.drivers.runtime.contract import Container, ContainerSpec, ContainerStartTimedOut
from tests.conformance.containers import AS_ROOT


@pytest.mark.container
async def test_the_probe_reports_enforced_restrictions(tmp_path: Path) -> None:
    capabilities = await BwrapRuntime(tmp_path / "data").probe()
    assert capabilities.usable, capabilities.error
    enforced = {item.name for item in capabilities.enforcement if item.enforced}
    for name in (
        "namespaces",
        "network",
        "capabilities",
        "seccomp",
        "egress-by-name",
        "pids",
        "file-size",
        "open-files",
    ):
        assert name in enforced
    usable = {controller.name for controller in get_controllers().usable}
    assert ("memory" in enforced) == ("memory" in usable)
    assert ("own-uid" in enforced) == AS_ROOT != ("rootless" in enforced)
    reasons = {item.name: item.reason for item in capabilities.enforcement if not item.enforced}
    assert "run as root" in reasons.get("own-uid", "run as root")
    assert "started as another user" in reasons.get("rootless", "started as another user")
    assert "disk-quota" not in enforced
    assert all(item.reason for item in capabilities.enforcement)
    assert not list((tmp_path / "data/agents").iterdir())


@pytest.mark.container
async def test_the_probe_reports_why_no_container_starts(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    capabilities = await BwrapRuntime(tmp_path / "data", bwrap=broken).probe()
    assert not capabilities.usable
    assert "No permissions to create new namespace" in capabilities.error
    assert not capabilities.enforcement
    assert not list((tmp_path / "data/agents").iterdir())


@pytest.mark.container
async def test_the_probe_tries_again_when_a_container_is_not_ready_in_time(tmp_path: Path) -> None:
    class SlowRuntime(BwrapRuntime):
        started: ClassVar[list[str]] = []

        async def start(self, spec: ContainerSpec) -> Container:
            self.started.append(spec.agent_id)
            if len(self.started) == 1:
                raise ContainerStartTimedOut("The container was not ready within 10 s")
            return await super().start(spec)

    capabilities = await SlowRuntime(tmp_path / "data").probe()
    assert capabilities.usable, capabilities.error
    assert len(set(SlowRuntime.started)) == 2
    assert not list((tmp_path / "data/agents").iterdir())


@pytest.mark.parametrize(
    ("file", "content", "remedy"),
    [
        ("proc/sys/kernel/unprivileged_userns_clone", "0\n", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("proc/sys/user/max_user_namespaces", "0\n", "sysctl -w user.max_user_namespaces=28633"),
        ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", 'roost-bwrap "{/data/tools,'),
        (".dockerenv", "", "--security-opt seccomp=unconfined"),
    ],
)
def test_each_known_reason_has_a_remedy(tmp_path: Path, file: str, content: str, remedy: str) -> None:
    assert machine_advice(Path("/data/tools"), tmp_path) == ""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
    assert remedy in machine_advice(Path("/data/tools"), tmp_path)
