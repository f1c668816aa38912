"""The contract of an engine, over every engine, each in a container."""

from collections.abc import AsyncIterator

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineFailed, EngineNotInstalled, InvalidVersionName
from roost.drivers.runtime.contract import EngineVersion
from roost.warden_client.errors import DialRefused
from tests.conformance.engines import CASES, TOKEN, EngineCase, EngineEnv, open_engine_env
from tests.conformance.model_server import ANSWER, MODELS

LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
WRONG = Sensitive("wrong-0123456789abcdef")


@pytest.fixture(scope="module", params=CASES)
async def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EngineEnv]:
    """One gateway for all tests that only call it, because a start takes seconds."""
    async with open_engine_env(request.param, tmp_path_factory.mktemp("data")) as env:
        await env.start()
        yield env


@pytest.fixture(params=CASES)
async def fresh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[EngineCase, EngineEnv]]:
    async with open_engine_env(request.param, tmp_path_factory.mktemp("data")) as env:
        yield request.param, env


async def test_an_installed_version_is_listed_and_has_its_folders(running: EngineEnv) -> None:
    engine = running.engine
    assert engine.default_version in engine.installed()
    for path, folder in engine.folders(engine.default_version).items():
        assert folder.is_dir()
        assert path.startswith("/")
    assert engine.require(engine.default_version) == EngineVersion(engine.id, engine.default_version)
    with pytest.raises(EngineNotInstalled):
        engine.require("0.0.1")


@pytest.mark.parametrize("version", ["", "-x", "../1", "1 2", "latest"])
async def test_an_invalid_version_is_rejected(running: EngineEnv, version: str) -> None:
    with pytest.raises(InvalidVersionName):
        running.engine.install(version, lambda _text, _done: None)


async def test_a_plan_is_pure(running: EngineEnv) -> None:
    setup = await running.setup()
    plans = [running.engine.plan(running.engine.default_version, setup) for _ in range(2)]
    assert plans[0] == plans[1]
    assert TOKEN.reveal() not in str(plans[0].argv) + str(plans[0].env)
    assert not any(path.startswith("/") or ".." in path for path in plans[0].files)


async def test_health_needs_the_token_and_has_the_version(running: EngineEnv) -> None:
    assert await running.engine.health(running.warden.dial, TOKEN) == running.engine.default_version
    with pytest.raises(EngineFailed):
        await running.engine.health(running.warden.dial, WRONG)


async def test_the_gateway_accepts_only_the_internal_token(running: EngineEnv) -> None:
    assert (await running.request("GET", "/v1/models"))[0] == 200
    assert (await running.request("GET", "/v1/models", token=WRONG))[0] == 401
    assert (await running.chat(token=WRONG))[0] == 401


async def test_the_gateway_listens_on_the_loopback_only(running: EngineEnv) -> None:
    listeners = await running.listeners()
    assert "0100007F" in listeners
    assert listeners <= LOOPBACK


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_is_answered_by_the_model_gateway(running: EngineEnv, stream: bool) -> None:
    before = len(running.models.chats)
    status, body = await running.chat(stream=stream)
    assert (status, ANSWER in body) == (200, True), body
    assert [chat["model"] for chat in running.models.chats[before:]] == [MODELS[0]]


async def test_a_gateway_answers_only_between_start_and_stop(fresh: tuple[EngineCase, EngineEnv]) -> None:
    case, env = fresh
    path, content, words = case.kept
    assert await env.engine.ready(env.warden.dial) is False
    with pytest.raises(DialRefused):
        await env.engine.health(env.warden.dial, TOKEN)

    await env.warden.write(path, content, root="home")
    await env.start()
    await env.warden.stop("gateway")
    assert await env.engine.ready(env.warden.dial) is False
    assert (await env.warden.processes()).get("gateway") is None or await env.listeners() == set()

    await env.start()
    assert words in await env.warden.read(path, root="home", limit=1 << 20)
    assert await env.engine.health(env.warden.dial, TOKEN) == env.engine.default_version


@pytest.mark.parametrize("kind", ["garbage", "hostile"])
async def test_the_platforms_settings_override_any_files_in_the_home(
    fresh: tuple[EngineCase, EngineEnv], kind: str
) -> None:
    case, env = fresh
    files = case.garbage if kind == "garbage" else case.hostile
    for path, content in files.items():
        await env.warden.write(path, content, root="home")
    await env.start()
    assert (await env.request("GET", "/v1/models"))[0] == 200
    assert (await env.request("GET", "/v1/models", token=WRONG))[0] == 401
    assert await env.listeners() <= LOOPBACK
    status, body = await env.chat()
    assert (status, ANSWER in body) == (200, True), body
    assert env.models.chats[-1]["model"] == MODELS[0]
