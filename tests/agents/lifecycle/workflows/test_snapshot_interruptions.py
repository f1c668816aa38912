"""Resets and snapshots that a crash of the server interrupts: the workspace is one of the two states in the end."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from roost import work
from roost.agents.lifecycle.workflows.model import START
from roost.agents.workspace.snapshots import model
from roost.agents.workspace.snapshots.index import WorkspaceIndex
from roost.agents.workspace.snapshots.restore import restore_tree
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.runtime.contract import Container, ContainerSpec, RuntimeFailed
from roost.warden_client.changes import RemovePath, TreeChange
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until

POINTS = 24
STEP_SECONDS = 0.005
FILES = 40


async def shell(env: LifecycleEnv, agent_id: str, script: str) -> str:
    result = await env.runtimes.get_warden(agent_id).exec(["sh", "-c", script])
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode()


async def fill(env: LifecycleEnv, agent_id: str, name: str) -> str:
    """Make a workspace of files, folders and a link that differs in every path or content; return its CID."""
    script = f"""
    find . -mindepth 1 -delete
    mkdir both; for i in $(seq {FILES}); do
      mkdir -p {name}$((i % 3)); echo {name} > {name}$((i % 3))/$i; echo {name} > both/$i
    done
    ln -s {name}0/3 link; [ {name} = a ] && mkdir swap || echo file > swap
    """
    await shell(env, agent_id, script)
    return (await env.snapshots.sync(agent_id))[1].cid


async def describe(env: LifecycleEnv, agent_id: str) -> str:
    """Return all paths and contents, without what the warden of an interrupted reset still removes."""
    tree = "find . -path ./.roost-staging -prune -o"
    return await shell(env, agent_id, f"{tree} -printf '%p %y %l\\n' | sort; {tree} -type f -print | sort | xargs cat")


async def test_an_interrupted_reset_is_finished(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as env:
        agent_id = (await env.create()).id
        states: dict[str, str] = {}
        for name in ("a", "b"):
            cid = await fill(env, agent_id, name)
            states[cid] = await describe(env, agent_id)
    for point, cid in zip(range(POINTS), itertools.cycle(states), strict=False):
        async with open_lifecycle_env(database, folder) as env:
            reset = asyncio.create_task(env.snapshots.reset(agent_id, cid))
            await asyncio.wait({reset}, timeout=point * STEP_SECONDS)
        reset.cancel()
        with suppress(asyncio.CancelledError, Problem):
            await reset
        async with open_lifecycle_env(database, folder) as env:
            await until(lambda env=env: is_idle(env, agent_id))
            assert await describe(env, agent_id) in states.values(), f"a mixture, interrupted after {point} steps"
            _, present = await env.snapshots.sync(agent_id)
            assert states[present.cid] == await describe(env, agent_id)


async def test_a_reset_that_has_begun_outlives_a_container_that_does_not_start(
    env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id, start, failures = (await env.create()).id, env.runtime.start, [1]
    cid, before = await fill(env, agent_id, "a"), await describe(env, agent_id)
    await fill(env, agent_id, "b")
    snapshot = await env.snapshots.find_for_tenant(env.caller().tenant_id, cid)
    await env.runtime.stop(agent_id, grace=0)

    async def fail_once(spec: ContainerSpec) -> Container:
        if failures:
            failures.pop()
            raise RuntimeFailed("The container did not start")
        return await start(spec)

    monkeypatch.setattr(env.runtime, "start", fail_once)
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))
    await env.run(model.RESET, agent_id, {"snapshot": snapshot.id, "is_writing": True})
    assert not failures
    await env.run(START, agent_id)
    assert await describe(env, agent_id) == before


async def test_a_reset_waits_for_another_change_of_the_workspace(
    env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id, attempts, begun, gate = (await env.create()).id, list[str](), asyncio.Event(), asyncio.Event()
    cid = await fill(env, agent_id, "a")
    await fill(env, agent_id, "b")
    warden = env.runtimes.get_warden(agent_id)

    async def wait_for_reset() -> AsyncIterator[TreeChange]:
        begun.set()  # the container has taken the request
        await gate.wait()
        yield RemovePath("swap")

    async def restore(*arguments: Any) -> WorkspaceIndex:
        attempts.append(agent_id)
        if len(attempts) > 1:
            gate.set()
            await other
        return await restore_tree(*arguments)

    other = asyncio.create_task(warden.tree.apply(wait_for_reset()))
    await begun.wait()
    monkeypatch.setattr("roost.agents.workspace.snapshots.service.restore_tree", restore)
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))
    await env.snapshots.reset(agent_id, cid)
    assert len(attempts) == 2
    assert (await env.snapshots.sync(agent_id))[1].cid == cid


async def is_idle(env: LifecycleEnv, agent_id: str) -> bool:
    operations = [
        await env.db.read(lambda connection, kind=kind: work.find_last_unfinished(connection, kind, agent_id))
        for kind in (model.RESET, model.SYNC)
    ]
    return not any(operations)
