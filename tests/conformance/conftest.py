"""Fixtures that start containers of every runtime that isolates them, and the kinds of sandboxes."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import EngineVersion, Runtime
from tests.conformance.containers import RunningContainer, Start, containers
from tests.conformance.runtimes import make_docker_runtime
from tests.conformance.sandboxes import SANDBOXES, MakeSandbox


def engine_folders(folder: Path, engine: EngineVersion) -> Mapping[str, Path]:
    return {f"/engine/{engine.id}": folder.with_name("engines") / engine.version}


def bwrap(folder: Path) -> Runtime:
    return BwrapRuntime(folder, partial(engine_folders, folder))


def docker(folder: Path) -> Runtime:
    return make_docker_runtime(folder, partial(engine_folders, folder))


ISOLATING = [
    pytest.param(bwrap, id="bwrap", marks=pytest.mark.container),
    pytest.param(docker, id="docker", marks=[pytest.mark.container, pytest.mark.docker]),
]


@pytest.fixture(params=ISOLATING)
async def start(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Start]:
    async with containers(request.param(tmp_path / "data")) as start_container:
        yield start_container


@pytest.fixture
async def container(start: Start) -> RunningContainer:
    """A container with egress, as agents have it."""
    return await start(egress="proxy", relays={8798: "proxy"})


@pytest.fixture(params=SANDBOXES[:2])
def make_sandbox(request: pytest.FixtureRequest) -> MakeSandbox:
    """For suites of drivers that use sandboxes, on a kernel of today."""
    return request.param
