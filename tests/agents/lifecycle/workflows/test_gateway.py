"""Start of the gateway: existing settings are merged if they are readable, and errors include its log."""

import json
import time

import pytest

from roost.agents.lifecycle.workflows.gateway import STOP_SECONDS, GatewayFailed
from roost.agents.registry.model import Agent
from roost.drivers.runtime.contract import ContainerSpec
from roost.warden_client.errors import ContainerNotRunning
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, until

SETTINGS = ".roost/fake/settings.json"


async def with_container(env: LifecycleEnv, name: str = "Ada") -> Agent:
    """Create an agent with a container but without a gateway."""
    agent = await env.create_row(name)
    await env.runtime.start(ContainerSpec(agent.id))
    return agent


async def settings(env: LifecycleEnv, agent: Agent) -> dict:
    return json.loads(await env.warden(agent.id).read(SETTINGS, root="home", limit=10_000))


async def test_the_gateway_accepts_the_internal_token(env: LifecycleEnv) -> None:
    agent = await with_container(env)
    await env.start.starter.start(agent)
    assert await env.start.starter.is_up(agent)
    assert await env.engine.health(
        env.runtimes.get_warden(agent.id).dial, await env.agents.get_internal_token(agent.id)
    )
    (entry,) = [e for e in await env.warden(agent.id).list(".roost/fake", root="home") if e.name == "settings.json"]
    assert entry.mode & 0o777 == 0o600


async def test_settings_of_users_are_kept_and_ours_are_restored(env: LifecycleEnv) -> None:
    agent = await with_container(env)
    await env.warden(agent.id).write(SETTINGS, b'{"mine": 1, "token": "stolen"}', root="home")
    await env.start.starter.start(agent)
    found = await settings(env, agent)
    assert found["mine"] == 1
    assert found["token"] == (await env.agents.get_internal_token(agent.id)).reveal()


@pytest.mark.parametrize(
    "trick",
    [
        "echo no json > settings.json",
        "mkfifo settings.json",
        "ln -s /etc/passwd settings.json",
        "ln -s settings.json settings.json",
        "truncate -s 5M settings.json",
    ],
)
async def test_unreadable_settings_are_replaced(env: LifecycleEnv, trick: str) -> None:
    agent = await with_container(env)
    command = f'mkdir -p "$HOME/.roost/fake" && cd "$HOME/.roost/fake" && {trick}'
    assert (await env.warden(agent.id).exec(["sh", "-c", command])).exit_code == 0
    await env.start.starter.start(agent)
    assert (await settings(env, agent))["version"] == "1.0.0"


async def test_a_gateway_that_exits_reports_its_last_log_lines(env: LifecycleEnv) -> None:
    agent = await with_container(env, "fail-start")
    with pytest.raises(GatewayFailed) as failure:
        await env.start.starter.start(agent)
    first, *lines = failure.value.message.splitlines()
    assert first == "The gateway exited with code 3. Its last lines:"
    assert lines[:2] == ["fake gateway 1.0.0 starts", "fake gateway was told to fail"]
    assert len(lines) <= 12
    assert (await env.warden(agent.id).processes())["gateway"].state == "exited"
    assert not await env.start.starter.is_up(agent)


async def test_a_gateway_that_does_not_answer_is_stopped_at_the_deadline(
    env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env.engine, "start_deadline", 0.3)
    agent = await with_container(env, "never-ready")
    with pytest.raises(GatewayFailed, match="did not answer within 0 s"):
        await env.start.starter.start(agent)
    assert (await env.warden(agent.id).processes())["gateway"].state == "exited"


async def test_a_restart_does_not_wait_long_for_a_gateway_that_does_not_end(env: LifecycleEnv) -> None:
    agent = await with_container(env)
    warden = env.warden(agent.id)
    await warden.start("gateway", ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"], env={})
    await until(lambda: warden.logs(source="gateway"))
    began = time.monotonic()
    await env.start.starter.start(agent)
    assert STOP_SECONDS < time.monotonic() - began < STOP_SECONDS + 5
    assert await env.start.starter.is_up(agent)


async def test_a_gateway_needs_a_container(env: LifecycleEnv) -> None:
    agent = await env.create_row()
    assert not await env.start.starter.is_up(agent)
    with pytest.raises(ContainerNotRunning):
        await env.start.starter.start(agent)
