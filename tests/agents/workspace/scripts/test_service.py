"""Scripts run at a start and at a retry, but not without a container."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.workspace.scripts.model import (
    OPERATION_KIND,
    ScriptLaunchFailed,
    ScriptState,
    ScriptStatus,
    operation_subject,
)
from roost.core.db import Database
from roost.work import OperationState, add_operation
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until


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


PENDING, RUNNING, SUCCESS, FAILED = (
    ScriptState.PENDING,
    ScriptState.RUNNING,
    ScriptState.SUCCESS,
    ScriptState.FAILED,
)


async def run(env: LifecycleEnv, agent: Agent, manifest: object, *, rebuild: bool = True) -> Mapping[str, ScriptStatus]:
    """Write the manifest and run its scripts; return their status when the operation is finished."""
    raw = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    await env.warden(agent.id).write("manifest.json", raw)
    return await retry(env, agent, rebuild=rebuild)


async def retry(env: LifecycleEnv, agent: Agent, *, rebuild: bool) -> Mapping[str, ScriptStatus]:
    await env.db.write(lambda connection: env.start.scripts.enqueue(connection, agent.id, rebuild=rebuild))
    await env.quiet(agent)
    return await env.start.scripts.list(agent.id)


async def log_lines(env: LifecycleEnv, agent: Agent, source: str) -> list[str]:
    return [line.text for line in await env.warden(agent.id).logs(source=source)]


def scripts(build: Any = None, start: Any = None) -> dict[str, Any]:
    return {"version": 1, "scripts": {"build": build, "start": start}}


async def test_build_and_then_start(env: LifecycleEnv) -> None:
    agent = await env.settled()
    build = "pwd; echo __AGENT_HOST__ > built; echo $GIVEN"
    seen = await run(env, agent, scripts(build, "cat built; exec sleep 1000"))
    assert (seen["build"].state, seen["build"].exit_code, seen["build"].reason) == (SUCCESS, 0, None)
    assert seen["start"].state is RUNNING
    assert seen["build"].started_at is not None
    assert seen["build"].finished_at is not None
    assert (await log_lines(env, agent, "build"))[1] == "value of GIVEN"
    await until(lambda: log_lines(env, agent, "start"))
    assert await log_lines(env, agent, "start") == [f"{agent.id}.agents.localhost"]


async def test_a_build_is_done_once_for_a_manifest(env: LifecycleEnv) -> None:
    agent = await env.settled()
    manifest = scripts("echo x >> builds", "exec sleep 1000")
    await run(env, agent, manifest, rebuild=False)
    first = (await env.warden(agent.id).processes())["start"].pid
    await env.services.restart(agent.id)
    await env.quiet(agent)
    assert await env.warden(agent.id).read("builds", limit=10) == b"x\n"
    assert (await env.warden(agent.id).processes())["start"].pid != first  # its environment may have changed
    await run(env, agent, {**manifest, "changed": True}, rebuild=False)
    assert await env.warden(agent.id).read("builds", limit=10) == b"x\nx\n"
    await retry(env, agent, rebuild=True)
    assert await env.warden(agent.id).read("builds", limit=10) == b"x\nx\nx\n"


async def test_a_build_that_fails_starts_nothing(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await run(env, agent, scripts("true", "exec sleep 1000"))
    seen = await run(env, agent, scripts("echo broken; exit 3", "exec sleep 1000"))
    assert (seen["build"].state, seen["build"].exit_code, seen["build"].reason) == (FAILED, 3, "It ended with code 3")
    assert seen["start"].state is FAILED
    assert (await env.warden(agent.id).processes())["start"].state == "exited"


async def test_a_build_that_takes_too_long_is_ended_with_all_it_began(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, build=0.3) as env:
        agent = await env.settled()
        seen = await run(env, agent, scripts("sleep 777 & sleep 778"))
        assert (seen["build"].state, seen["build"].exit_code) == (FAILED, 124)
        assert "longer than" in (seen["build"].reason or "")
        ended = await env.warden(agent.id).exec(["pgrep", "-f", "^sleep 77[78]$"])
        assert ended.stdout == b""


async def test_a_start_script_that_ends_is_told_and_started_again(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await run(env, agent, scripts(start="exit 5"))
    await until(lambda: _failed(env, agent))
    seen = await env.start.scripts.list(agent.id)
    assert seen["start"].exit_code == 5
    assert seen["build"].state is ScriptState.NOT_CONFIGURED


async def test_a_manifest_that_goes_takes_its_scripts_along(env: LifecycleEnv) -> None:
    agent = await env.settled()
    await run(env, agent, scripts("true", "exec sleep 1000"))
    await env.warden(agent.id).exec(["rm", "manifest.json"])
    seen = await retry(env, agent, rebuild=False)
    assert {script.state for script in seen.values()} == {ScriptState.NOT_CONFIGURED}
    assert (await env.warden(agent.id).processes())["start"].state == "exited"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("echo '[' > manifest.json", "not valid JSON"),
        ("truncate -s 2M manifest.json", "larger than 1 MiB"),
        ("ln -s /etc/passwd manifest.json", "leads out of the workspace"),
        ("ln -s manifest.json manifest.json", "leads out of the workspace"),
        ("mkfifo manifest.json", "not a regular file"),
        ("mkdir manifest.json", "not a regular file"),
        ("ln -s /dev/zero manifest.json", "leads out of the workspace"),
        ('printf \'{"scripts": {"build": "a\\\\u0000"}}\' > manifest.json', "NUL"),
    ],
)
async def test_a_manifest_that_means_harm_is_a_reason(env: LifecycleEnv, make: str, reason: str) -> None:
    agent = await env.settled()
    assert (await env.warden(agent.id).exec(["sh", "-c", f"rm -rf manifest.json; {make}"])).exit_code == 0
    seen = await retry(env, agent, rebuild=True)
    assert {script.state for script in seen.values()} == {FAILED}
    assert reason in (seen["build"].reason or "")


async def test_a_build_goes_on_while_the_server_is_away(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, lease=0.3) as first:
        agent = await first.settled()
        build = "echo began >> builds; until [ -e go ]; do sleep 0.05; done"
        await first.warden(agent.id).write("manifest.json", json.dumps(scripts(build, "exec sleep 1000")).encode())
        await first.start.scripts.retry(agent.id)
        await until(lambda: _has_build(first, agent))
        pid = (await first.warden(agent.id).processes())["build"].pid
        await first.queue.stop(grace=0)
        async with open_lifecycle_env(database, folder) as second:
            assert (await second.warden(agent.id).processes())["build"].pid == pid
            await second.warden(agent.id).write("go", b"")
            await second.quiet(agent)
            seen = await second.start.scripts.list(agent.id)
            assert (seen["build"].state, seen["start"].state) == (SUCCESS, RUNNING)
            assert await second.warden(agent.id).read("builds", limit=100) == b"began\n"


async def test_a_build_that_ended_while_the_server_was_away(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, lease=0.3) as first:
        agent = await first.settled()
        build = "echo began >> builds; until [ -e go ]; do sleep 0.05; done; exit 9"
        await first.warden(agent.id).write("manifest.json", json.dumps(scripts(build)).encode())
        await first.start.scripts.retry(agent.id)
        await until(lambda: _has_build(first, agent))
        await first.queue.stop(grace=0)
        await first.warden(agent.id).write("go", b"")
        await until(lambda: _is_finished(first, agent))
        async with open_lifecycle_env(database, folder) as second:
            await second.quiet(agent)
            seen = await second.start.scripts.list(agent.id)
            assert (seen["build"].state, seen["build"].exit_code) == (FAILED, 9)
            assert await second.warden(agent.id).read("builds", limit=100) == b"began\n"


async def _is(env: LifecycleEnv, agent: Agent, name: str, state: ScriptState) -> bool:
    return (await env.start.scripts.list(agent.id))[name].state is state


async def _failed(env: LifecycleEnv, agent: Agent) -> bool:
    return await _is(env, agent, "start", FAILED)


async def _has_build(env: LifecycleEnv, agent: Agent) -> bool:
    """Tell whether the build's process runs, which begins after its state is saved."""
    return "build" in await env.warden(agent.id).processes()


async def _is_finished(env: LifecycleEnv, agent: Agent) -> bool:
    return (await env.warden(agent.id).processes())["build"].state == "exited"
