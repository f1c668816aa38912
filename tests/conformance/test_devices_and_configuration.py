"""The contracts of devices and configuration, over every engine, each in a container with a running gateway.

They share a module, because a real gateway takes seconds to start.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    OUTPUT_LIMIT,
    ConfigurationAbility,
    ConfigurationChanged,
    ConfigurationRejected,
    ConfigurationVerdict,
)
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceRequestNotFound
from roost.drivers.engine.contract import EngineFailed
from roost.warden_client.errors import DialRefused
from tests.conformance.engines import CASES, TOKEN, EngineEnv, open_engine_env

FILES = {
    "fake": ".roost/fake/settings.json",
    "hermes": ".hermes/config.yaml",
    "openclaw": ".openclaw/openclaw.json",
}
USERS = {
    # settings of a user with a secret; a part of them that remains visible; and settings that the engine rejects
    "fake": ({"mine": "owl", "my_key": "s3cret"}, "owl", {"greeting": 7}),
    "hermes": ({"display": {"skin": "owl"}, "custom": {"api_key": "s3cret"}}, "owl", [1]),
    "openclaw": (
        {"messages": {"ackReaction": "owl"}, "talk": {"providers": {"x": {"apiKey": "s3cret"}}}},
        "owl",
        {"messages": 7},
    ),
}
UNREADABLE = {"fake": "{", "hermes": "{a: [", "openclaw": "{a: "}
THEIRS = {
    # other access to the gateway, in the form of each engine
    "fake": {"token": "theirs", "port": 1, "name": "theirs"},
    "hermes": {"platforms": {"api_server": {"enabled": False, "extra": {"host": "0.0.0.0", "key": "theirs-0123456"}}}},
    "openclaw": {"gateway": {"bind": "lan", "auth": {"mode": "none"}}, "logging": {"file": "/tmp/theirs"}},
}


@pytest.fixture(scope="module", params=CASES)
async def env(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EngineEnv]:
    async with open_engine_env(request.param, tmp_path_factory.mktemp("data")) as env:
        await env.start()
        yield env


@pytest.fixture
def agent(env: EngineEnv) -> AgentContext:
    return AgentContext(env.warden, TOKEN, env.engine.default_version)


@pytest.fixture
def config(env: EngineEnv) -> ConfigurationAbility:
    assert env.engine.configuration is not None
    return env.engine.configuration


@pytest.fixture
def devices(env: EngineEnv) -> DeviceAbility:
    if env.engine.devices is None:
        pytest.skip("the engine has no devices")
    return env.engine.devices


async def write(env: EngineEnv, config: ConfigurationAbility, agent: AgentContext, text: str) -> None:
    written = await config.write(agent, await env.setup(), text)
    if not written.live:
        await env.warden.stop("gateway")
        await env.start()


def meaning(shown: str) -> object:
    """Parse JSON, because engines that write the file themselves change the order of keys and spaces."""
    return json.loads(shown) if shown.startswith("{") else shown


async def file(env: EngineEnv) -> str:
    return (await env.warden.read(FILES[env.engine.id], root="home", limit=1 << 20)).decode()


async def test_which_engine_has_devices(env: EngineEnv) -> None:
    assert (env.engine.devices is None) == (env.engine.id == "hermes")


async def test_a_new_engine_has_no_devices(devices: DeviceAbility, agent: AgentContext) -> None:
    found = await devices.list(agent)
    assert (list(found.pending), list(found.paired)) == ([], [])


@pytest.mark.parametrize("request_id", ["unknown", "0" * 36, "x" * 128])
async def test_a_missing_request_is_not_found(devices: DeviceAbility, agent: AgentContext, request_id: str) -> None:
    with pytest.raises(DeviceRequestNotFound):
        await devices.approve(agent, request_id)


async def test_the_internal_token_is_needed(devices: DeviceAbility, agent: AgentContext) -> None:
    with pytest.raises(EngineFailed):
        await devices.list(replace(agent, token=Sensitive("wrong")))


async def test_the_initial_file_is_valid(config: ConfigurationAbility, agent: AgentContext) -> None:
    assert (await config.check(agent)).valid
    assert TOKEN.reveal() not in await config.read(agent)


async def test_a_users_settings_survive_a_restart(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    users, word, _ = USERS[env.engine.id]
    assert (await config.check(agent, json.dumps(users))).valid
    await write(env, config, agent, json.dumps(users))
    shown = await config.read(agent)
    assert word in shown
    assert "s3cret" not in shown
    assert TOKEN.reveal() not in shown
    await env.warden.stop("gateway")
    await env.start()
    assert meaning(await config.read(agent)) == meaning(shown)
    assert "s3cret" in await file(env)


async def test_a_redacted_file_can_be_written_back(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    users, _, _ = USERS[env.engine.id]
    await write(env, config, agent, json.dumps(users))
    shown, before = await config.read(agent), await file(env)
    assert (await config.check(agent, shown)).valid
    await write(env, config, agent, shown)
    assert meaning(await config.read(agent)) == meaning(shown)
    assert "s3cret" in before
    assert "s3cret" in await file(env)


async def test_a_placeholder_without_a_value_is_rejected(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    users, _, _ = USERS[env.engine.id]
    await write(env, config, agent, json.dumps(users))
    shown = await config.read(agent)
    await write(env, config, agent, "{}")
    before = await file(env)
    with pytest.raises(ConfigurationRejected):
        await config.write(agent, await env.setup(), shown)
    assert await file(env) == before


async def test_the_platforms_keys_override_a_write(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    await write(env, config, agent, json.dumps(THEIRS[env.engine.id]))
    assert (await env.request("GET", "/v1/models"))[0] == 200
    assert (await env.request("GET", "/v1/models", token=Sensitive("theirs-0123456")))[0] == 401
    assert await env.listeners() <= {"0100007F", "00000000000000000000000001000000"}


async def test_unreadable_and_invalid_text_are_rejected_with_a_reason(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    before = await file(env)
    unreadable = await config.check(agent, UNREADABLE[env.engine.id])
    wrong = await config.check(agent, json.dumps(USERS[env.engine.id][2]))
    for verdict in (unreadable, wrong):
        assert verdict.valid is False
        assert 0 < len(verdict.output) <= OUTPUT_LIMIT
    assert await file(env) == before


async def test_deep_nesting_is_rejected_at_once(config: ConfigurationAbility, agent: AgentContext) -> None:
    for text in ("[" * 200_000, '{"a":' * 100_000, "{" * 100_000):
        assert (await config.check(agent, text)).valid is False


async def test_undo_restores_the_file(env: EngineEnv, config: ConfigurationAbility, agent: AgentContext) -> None:
    before = await file(env)
    users, word, _ = USERS[env.engine.id]
    written = await config.write(agent, await env.setup(), json.dumps(users))
    assert word in await file(env)
    await written.undo()
    assert await file(env) == before


async def test_a_write_replaces_only_what_is_expected(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    users, word, _ = USERS[env.engine.id]
    await write(env, config, agent, "{}")
    shown, before = await config.read(agent), await file(env)
    with pytest.raises(ConfigurationChanged):
        await config.write(agent, await env.setup(), json.dumps(users), lambda text: text != shown)
    assert await file(env) == before
    await config.write(agent, await env.setup(), json.dumps(users), lambda text: text == shown)
    assert word in await file(env)


async def test_a_replaced_file_gives_a_verdict_or_a_problem(
    env: EngineEnv, config: ConfigurationAbility, agent: AgentContext
) -> None:
    path = f'"$HOME/{FILES[env.engine.id]}"'
    kept = await file(env)
    commands = (
        f"rm -rf {path}; ln -s /etc/passwd {path}",
        f"rm -rf {path}; mkfifo {path}",
        f"rm -rf {path}; mkdir {path}",
    )
    for command in commands:
        assert (await env.warden.exec(["sh", "-c", command])).exit_code == 0
        try:
            verdict: ConfigurationVerdict | None = await config.check(agent)
        except Problem:
            verdict = None
        assert verdict is None or not verdict.valid or env.engine.id == "openclaw"
        assert verdict is None or "root:" not in verdict.output
    await env.warden.exec(["sh", "-c", f"rm -rf {path}"])
    await env.warden.write(FILES[env.engine.id], kept.encode(), root="home", mode=0o600)


async def test_a_stopped_gateway_gives_no_answer(env: EngineEnv, agent: AgentContext) -> None:
    """Must be the last test, because it stops the gateway."""
    await env.warden.stop("gateway")
    if env.engine.devices is not None:
        with pytest.raises((EngineFailed, DialRefused)):
            await env.engine.devices.list(agent)
        with pytest.raises((EngineFailed, DialRefused)):
            await env.engine.devices.approve(agent, "unknown")
    if env.engine.id != "hermes":  # Hermes reads the file without a gateway
        assert env.engine.configuration is not None
        with pytest.raises((EngineFailed, DialRefused)):
            await env.engine.configuration.read(agent)
