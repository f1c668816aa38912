"""The contract of an engine, sentence by sentence, over every engine, each in a container."""

from collections.abc import AsyncIterator

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineFailed, EngineNotInstalled, InvalidVersionName
from roost.drivers.runtime.contract import EngineVersion
from roost.drivers.runtime.warden_client import DialRefused
from tests.conformance.engines import CASES, TOKEN, Case, Place, place
from tests.conformance.model_server import ANSWER, MODELS

LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
WRONG = Sensitive("wrong-0123456789abcdef")


@pytest.fixture(scope="module", params=CASES)
async def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """One gateway for all tests that only talk to it: a start takes seconds."""
    async with place(request.param, tmp_path_factory.mktemp("box")) as made:
        await made.start()
        yield made


@pytest.fixture(params=CASES)
async def fresh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Case, Place]]:
    async with place(request.param, tmp_path_factory.mktemp("box")) as made:
        yield request.param, made


async def test_an_installed_version_is_listed_and_has_its_folders(running: Place) -> None:
    engine = running.engine
    assert engine.default_version in engine.installed()
    for path, folder in engine.folders(engine.default_version).items():
        assert folder.is_dir()
        assert path.startswith("/")
    assert engine.require(engine.default_version) == EngineVersion(engine.id, engine.default_version)
    with pytest.raises(EngineNotInstalled):
        engine.require("0.0.1")


@pytest.mark.parametrize("version", ["", "-x", "../1", "1 2", "latest"])
async def test_what_is_no_version_is_refused(running: Place, version: str) -> None:
    with pytest.raises(InvalidVersionName):
        running.engine.install(version, lambda _text, _done: None)


async def test_a_plan_is_pure(running: Place) -> None:
    setup = await running.setup()
    plans = [running.engine.plan(running.engine.default_version, setup) for _ in range(2)]
    assert plans[0] == plans[1]
    assert TOKEN.reveal() not in str(plans[0].argv) + str(plans[0].env)
    assert not any(path.startswith("/") or ".." in path for path in plans[0].files)


async def test_health_needs_the_token_and_tells_the_version(running: Place) -> None:
    health = await running.engine.health(running.warden.dial, TOKEN)
    assert health.version == running.engine.default_version
    with pytest.raises(EngineFailed):
        await running.engine.health(running.warden.dial, WRONG)


async def test_the_gateway_takes_the_internal_token_and_nothing_else(running: Place) -> None:
    assert (await running.request("GET", "/v1/models"))[0] == 200
    assert (await running.request("GET", "/v1/models", token=WRONG))[0] == 401
    assert (await running.chat(token=WRONG))[0] == 401


async def test_the_gateway_listens_on_the_loopback_only(running: Place) -> None:
    listeners = await running.listeners()
    assert "0100007F" in listeners
    assert listeners <= LOOPBACK


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_is_answered_by_the_model_gateway(running: Place, stream: bool) -> None:
    before = len(running.models.chats)
    status, body = await running.chat(stream=stream)
    assert (status, ANSWER in body) == (200, True), body
    assert [chat["model"] for chat in running.models.chats[before:]] == [MODELS[0]]


async def test_before_the_start_and_after_the_stop_nothing_answers(fresh: tuple[Case, Place]) -> None:
    case, at = fresh
    path, content, words = case.kept
    assert await at.engine.ready(at.warden.dial) is False
    with pytest.raises(DialRefused):
        await at.engine.health(at.warden.dial, TOKEN)

    await at.warden.write(path, content, root="home")
    await at.start()
    await at.warden.stop("gateway")
    assert await at.engine.ready(at.warden.dial) is False
    assert (await at.warden.processes()).get("gateway") is None or await at.listeners() == set()

    await at.start()
    assert words in await at.warden.read(path, root="home", limit=1 << 20)
    assert (await at.engine.health(at.warden.dial, TOKEN)).version == at.engine.default_version


@pytest.mark.parametrize("kind", ["garbage", "hostile"])
async def test_whatever_stands_in_the_home_the_gateway_starts_as_the_platform_says(
    fresh: tuple[Case, Place], kind: str
) -> None:
    case, at = fresh
    files = case.garbage if kind == "garbage" else case.hostile
    for path, content in files.items():
        await at.warden.write(path, content, root="home")
    await at.start()
    assert (await at.request("GET", "/v1/models"))[0] == 200
    assert (await at.request("GET", "/v1/models", token=WRONG))[0] == 401
    assert await at.listeners() <= LOOPBACK
    status, body = await at.chat()
    assert (status, ANSWER in body) == (200, True), body
    assert at.models.chats[-1]["model"] == MODELS[0]
