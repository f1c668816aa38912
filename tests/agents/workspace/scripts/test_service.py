"""Scripts run at a start and at a retry, but not without a container."""

import asyncio
import json

import pytest

from roost.agents.registry.errors import AgentNotFound
from roost.agents.workspace.scripts.model import OPERATION_KIND, ScriptLaunchFailed, ScriptState, operation_subject
from roost.work import OperationState, add_operation
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, until


def manifest(build: str, start: str) -> bytes:
    return json.dumps({"scripts": {"build": build, "start": start}}).encode()


async def test_nothing_is_configured_at_first(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await env.quiet(agent)
    assert {one.state for one in (await env.start.scripts.list(agent.id)).values()} == {ScriptState.NOT_CONFIGURED}


async def test_a_start_of_the_agent_runs_them(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await env.warden(agent.id).write("manifest.json", manifest("echo x > built", "exec sleep 1000"))
    await env.runtime.stop(agent.id, grace=0)
    assert (await env.start.scripts.list(agent.id))["build"].state is ScriptState.NOT_CONFIGURED
    await env.services.restart(agent.id)
    await env.quiet(agent)
    seen = await env.start.scripts.list(agent.id)
    assert (seen["build"].state, seen["start"].state) == (ScriptState.SUCCESS, ScriptState.RUNNING)
    await env.runtime.stop(agent.id, grace=0)
    seen = await env.start.scripts.list(agent.id)
    assert (seen["build"].state, seen["start"].state) == (ScriptState.SUCCESS, ScriptState.PENDING)


async def test_a_retry_ends_the_build_that_runs(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await env.warden(agent.id).write("manifest.json", manifest("echo $$; exec sleep 1000", "true"))
    await env.start.scripts.retry(agent.id)
    await until(lambda: _builds(env, agent.id))
    await env.warden(agent.id).write("manifest.json", manifest("true", "exec sleep 1000"))
    await env.start.scripts.retry(agent.id)
    await env.quiet(agent)
    seen = await env.start.scripts.list(agent.id)
    assert (seen["build"].state, seen["start"].state) == (ScriptState.SUCCESS, ScriptState.RUNNING)


async def test_retries_do_not_queue_up(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await env.warden(agent.id).write("manifest.json", manifest("echo x >> builds", ""))
    await asyncio.gather(*(env.start.scripts.retry(agent.id) for _ in range(20)))
    await env.quiet(agent)
    assert len(await env.warden(agent.id).read("builds", limit=100)) < 2 * 20


async def test_without_a_container_there_is_no_retry(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await env.runtime.stop(agent.id, grace=0)
    with pytest.raises(ScriptLaunchFailed):
        await env.start.scripts.retry(agent.id)
    with pytest.raises(AgentNotFound):
        await env.start.scripts.retry("nobody")


async def test_an_agent_that_goes_meanwhile_is_nothing_to_do(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await env.warden(agent.id).write("manifest.json", manifest("exec sleep 1000", ""))
    await env.start.scripts.retry(agent.id)
    await until(lambda: _builds(env, agent.id))
    await env.services.delete.delete(agent.id)
    await env.quiet(agent)
    run = await env.db.write(
        lambda connection: add_operation(connection, OPERATION_KIND, operation_subject("nobody")).id
    )
    assert (await env.queue.wait(run, 10)).state is OperationState.DONE


async def _builds(env: LifecycleEnv, agent_id: str) -> bool:
    return (await env.start.scripts.list(agent_id))["build"].state is ScriptState.RUNNING
