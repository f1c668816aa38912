"""The contracts of devices and of configuration, over every engine, each in a container with a gateway that runs.

Both in one module, because a real gateway takes seconds to start.
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
    ConfigurationRejected,
    ConfigurationVerdict,
)
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceRequestNotFound
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.runtime.warden_client import DialRefused
from tests.conformance.engines import CASES, TOKEN, Place, place

FILES = {
    "fake": ".roost/fake/settings.json",
    "hermes": ".hermes/config.yaml",
    "openclaw": ".openclaw/openclaw.json",
}
USERS = {
    # what a user may write, with a secret in it; what of it stays to be seen; and what the engine refuses
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
    # another way into the gateway, as each engine would understand it
    "fake": {"token": "theirs", "port": 1, "name": "theirs"},
    "hermes": {"platforms": {"api_server": {"enabled": False, "extra": {"host": "0.0.0.0", "key": "theirs-0123456"}}}},
    "openclaw": {"gateway": {"bind": "lan", "auth": {"mode": "none"}}, "logging": {"file": "/tmp/theirs"}},
}


@pytest.fixture(scope="module", params=CASES)
async def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with place(request.param, tmp_path_factory.mktemp("box")) as made:
        await made.start()
        yield made


@pytest.fixture
def inside(at: Place) -> AgentContext:
    return AgentContext(at.warden, TOKEN, at.engine.default_version)


@pytest.fixture
def config(at: Place) -> ConfigurationAbility:
    assert at.engine.configuration is not None
    return at.engine.configuration


@pytest.fixture
def devices(at: Place) -> DeviceAbility:
    if at.engine.devices is None:
        pytest.skip("an engine without devices says so by having none")
    return at.engine.devices


async def write(at: Place, config: ConfigurationAbility, inside: AgentContext, text: str) -> None:
    written = await config.write(inside, await at.setup(), text)
    if not written.live:
        await at.warden.stop("gateway")
        await at.start()


def meaning(shown: str) -> object:
    """Engines that write the file themselves mind neither the order of keys nor the space around them."""
    return json.loads(shown) if shown.startswith("{") else shown


async def file(at: Place) -> str:
    return (await at.warden.read(FILES[at.engine.id], root="home", limit=1 << 20)).decode()


async def test_which_engine_has_devices(at: Place) -> None:
    assert (at.engine.devices is None) == (at.engine.id == "hermes")


async def test_no_device_has_come(devices: DeviceAbility, inside: AgentContext) -> None:
    book = await devices.list(inside)
    assert (list(book.pending), list(book.paired)) == ([], [])


@pytest.mark.parametrize("request_id", ["nobody", "0" * 36, "x" * 128])
async def test_a_request_that_there_is_not(devices: DeviceAbility, inside: AgentContext, request_id: str) -> None:
    with pytest.raises(DeviceRequestNotFound):
        await devices.approve(inside, request_id)


async def test_the_internal_token_is_needed(devices: DeviceAbility, inside: AgentContext) -> None:
    with pytest.raises(EngineFailed):
        await devices.list(replace(inside, token=Sensitive("wrong")))


async def test_the_file_as_it_is_is_valid(config: ConfigurationAbility, inside: AgentContext) -> None:
    assert (await config.check(inside)).valid
    assert TOKEN.reveal() not in await config.read(inside)


async def test_what_a_user_writes_stays_through_a_restart(
    at: Place, config: ConfigurationAbility, inside: AgentContext
) -> None:
    users, word, _ = USERS[at.engine.id]
    assert (await config.check(inside, json.dumps(users))).valid
    await write(at, config, inside, json.dumps(users))
    shown = await config.read(inside)
    assert word in shown
    assert "s3cret" not in shown
    assert TOKEN.reveal() not in shown
    await at.warden.stop("gateway")
    await at.start()
    assert meaning(await config.read(inside)) == meaning(shown)
    assert "s3cret" in await file(at)


async def test_what_was_shown_can_be_written_back_without_a_loss(
    at: Place, config: ConfigurationAbility, inside: AgentContext
) -> None:
    users, _, _ = USERS[at.engine.id]
    await write(at, config, inside, json.dumps(users))
    shown, before = await config.read(inside), await file(at)
    assert (await config.check(inside, shown)).valid
    await write(at, config, inside, shown)
    assert meaning(await config.read(inside)) == meaning(shown)
    assert "s3cret" in before
    assert "s3cret" in await file(at)


async def test_a_placeholder_with_nothing_behind_it_is_refused(
    at: Place, config: ConfigurationAbility, inside: AgentContext
) -> None:
    users, _, _ = USERS[at.engine.id]
    await write(at, config, inside, json.dumps(users))
    shown = await config.read(inside)
    await write(at, config, inside, "{}")
    before = await file(at)
    with pytest.raises(ConfigurationRejected):
        await config.write(inside, await at.setup(), shown)
    assert await file(at) == before


async def test_the_platforms_keys_hold_whatever_is_written(
    at: Place, config: ConfigurationAbility, inside: AgentContext
) -> None:
    await write(at, config, inside, json.dumps(THEIRS[at.engine.id]))
    assert (await at.request("GET", "/v1/models"))[0] == 200
    assert (await at.request("GET", "/v1/models", token=Sensitive("theirs-0123456")))[0] == 401
    assert await at.listeners() <= {"0100007F", "00000000000000000000000001000000"}


async def test_what_cannot_be_read_is_told_from_what_is_wrong(
    at: Place, config: ConfigurationAbility, inside: AgentContext
) -> None:
    before = await file(at)
    unreadable = await config.check(inside, UNREADABLE[at.engine.id])
    assert (unreadable.valid, unreadable.readable) == (False, False)
    wrong = await config.check(inside, json.dumps(USERS[at.engine.id][2]))
    assert (wrong.valid, wrong.readable) == (False, True)
    for verdict in (unreadable, wrong):
        assert 0 < len(verdict.output) <= OUTPUT_LIMIT
    assert await file(at) == before


async def test_what_is_nested_without_end_is_answered_at_once(
    config: ConfigurationAbility, inside: AgentContext
) -> None:
    for text in ("[" * 200_000, '{"a":' * 100_000, "{" * 100_000):
        assert (await config.check(inside, text)).valid is False


async def test_undoing_puts_the_file_back(at: Place, config: ConfigurationAbility, inside: AgentContext) -> None:
    before = await file(at)
    users, word, _ = USERS[at.engine.id]
    written = await config.write(inside, await at.setup(), json.dumps(users))
    assert word in await file(at)
    await written.undo()
    assert await file(at) == before


async def test_what_an_agent_put_in_the_files_place_is_an_answer_or_a_problem(
    at: Place, config: ConfigurationAbility, inside: AgentContext
) -> None:
    path = f'"$HOME/{FILES[at.engine.id]}"'
    kept = await file(at)
    spoilt = (
        f"rm -rf {path}; ln -s /etc/passwd {path}",
        f"rm -rf {path}; mkfifo {path}",
        f"rm -rf {path}; mkdir {path}",
    )
    for command in spoilt:
        assert (await at.warden.exec(["sh", "-c", command])).exit_code == 0
        try:
            verdict: ConfigurationVerdict | None = await config.check(inside)
        except Problem:
            verdict = None
        assert verdict is None or not verdict.valid or at.engine.id == "openclaw"
        assert verdict is None or "root:" not in verdict.output
    await at.warden.exec(["sh", "-c", f"rm -rf {path}"])
    await at.warden.write(FILES[at.engine.id], kept.encode(), root="home", mode=0o600)


async def test_without_a_gateway_there_is_no_answer(at: Place, inside: AgentContext) -> None:
    """The last one: it stops the gateway."""
    await at.warden.stop("gateway")
    if at.engine.devices is not None:
        with pytest.raises((EngineFailed, DialRefused)):
            await at.engine.devices.list(inside)
        with pytest.raises((EngineFailed, DialRefused)):
            await at.engine.devices.approve(inside, "nobody")
    if at.engine.id != "hermes":  # which reads the file without one
        assert at.engine.configuration is not None
        with pytest.raises((EngineFailed, DialRefused)):
            await at.engine.configuration.read(inside)
