"""Runs an agent's scripts after a push, and shows the output of the build to who pushed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

from roost.agents.workspace.logs.model import LogMessage
from roost.agents.workspace.logs.service import LogService
from roost.agents.workspace.scripts.manifest import ManifestScripts
from roost.agents.workspace.scripts.model import BUILD, BUILD_TIMEOUT_SECONDS, ScriptState
from roost.agents.workspace.scripts.service import ScriptService
from roost.core import clock
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.git.contract import PushOutput
from roost.work import OperationWorker

_SOURCE = "script/build"
_WAIT_SECONDS = BUILD_TIMEOUT_SECONDS + 30
_LAST_LINES_SECONDS = 0.3  # lines arrive a little later than the end of the process that wrote them


class PushBuild:
    """Builds of pushes."""

    def __init__(self, db: Database, queue: OperationWorker, scripts: ScriptService, logs: LogService) -> None:
        self._db = db
        self._queue = queue
        self._scripts = scripts
        self._logs = logs

    async def run(self, agent_id: str, manifest: ManifestScripts, output: PushOutput) -> None:
        """Run the scripts of a manifest, or stop those of an earlier one; return when the build has ended.

        The scripts run to their end also if this is cancelled.
        """
        stored = (await self._scripts.list(agent_id)).values()
        is_configured = any(script.state is not ScriptState.NOT_CONFIGURED for script in stored)
        if not is_configured and manifest.build is None and manifest.start is None:
            return
        began = clock.utc_now()
        operation_id = await self._db.write(
            lambda connection: self._scripts.enqueue(connection, agent_id, rebuild=True)
        )
        if manifest.build is None:
            return
        await output.say("Running the build script ...")
        await self._show_build(agent_id, operation_id, began, output)
        build = (await self._scripts.list(agent_id))[BUILD]
        succeeded = build.state is ScriptState.SUCCESS
        await output.say("The build succeeded." if succeeded else f"The build failed: {build.reason or build.state}")

    async def _show_build(self, agent_id: str, operation_id: str, began: datetime, output: PushOutput) -> None:
        finished = asyncio.create_task(self._queue.wait(operation_id, _WAIT_SECONDS))
        try:
            with self._logs.follow(agent_id) as messages:
                await _show_lines(messages, finished, began, output)
        except Problem as problem:  # too many or too slow readers; the build goes on
            await output.say(f"The output of the build cannot be shown: {problem.message}")
            await finished
        finally:
            finished.cancel()


async def _show_lines(
    messages: AsyncIterator[LogMessage], finished: asyncio.Task[object], began: datetime, output: PushOutput
) -> None:
    """Show the lines of the build that are written until it is finished."""
    following = asyncio.ensure_future(anext(messages))
    try:
        while True:
            waiting = (following,) if finished.done() else (following, finished)
            timeout = _LAST_LINES_SECONDS if finished.done() else None
            done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if following in done:
                message = following.result()
                if message.source == _SOURCE and message.timestamp >= began:
                    await output.say(message.message)
                following = asyncio.ensure_future(anext(messages))
            elif not done:
                return
    except StopAsyncIteration:  # the agent is deleted
        return
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
