from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import advice
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.start import controllers
from tests.drivers.runtime.bwrap.containers import AS_ROOT


@pytest.mark.container
async def test_it_tells_what_held(tmp_path: Path) -> None:
    found = await BwrapRuntime(tmp_path / "data").probe()
    assert found.usable, found.error
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
        assert found.enforces(name), name
    usable = {one.name for one in controllers().usable}
    assert found.enforces("memory") == ("memory" in usable)
    assert found.enforces("own-uid") == AS_ROOT != found.enforces("rootless")
    assert not found.enforces("disk-quota")
    assert all(item.reason for item in found.enforcement)
    assert not list((tmp_path / "data/agents").iterdir())


@pytest.mark.container
async def test_it_tells_why_nothing_works(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    found = await BwrapRuntime(tmp_path / "data", bwrap=broken).probe()
    assert not found.usable
    assert "No permissions to create new namespace" in found.error
    assert not found.enforcement
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
def test_a_remedy_for_each_known_reason(tmp_path: Path, file: str, content: str, remedy: str) -> None:
    assert advice.machine(Path("/data/tools"), tmp_path) == ""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
    assert remedy in advice.machine(Path("/data/tools"), tmp_path)
