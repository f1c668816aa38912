"""The scripts of agents: asked for by a start or a retry, run by an operation, watched in the box by its warden.

The operation can be cut off anywhere: a build that it began is found by its name and time, and waited for again.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.scripts import manifest, model, store
from roost.agents.scripts.errors import InvalidManifest, ScriptLaunchFailed
from roost.agents.scripts.model import BUILD, PROCESSES, ScriptStatus
from roost.agents.scripts.run import ScriptRun
from roost.core import log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import ContainerNotRunning
from roost.drivers.runtime.warden_client import ProcessStatus
from roost.work import ClaimedOperation, OperationWorker

Origin = Callable[[str], str]


class EnvironmentInputs(Protocol):
    """What an agent's programs are given of its secrets and variables, by name."""

    @property
    def environment(self) -> Mapping[str, Sensitive[str]]: ...


Equip = Callable[[Agent], Awaitable[EnvironmentInputs]]
_log = log.get_logger("scripts")


class ScriptService:
    """`origin` is an agent's id to its public origin, whose host stands in scripts where the manifest wants it;
    `build_seconds` is how long a build may run.
    """

    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        roster: AgentRepository,
        reach: AgentRuntimes,
        origin: Origin,
        equip: Equip,
        build_seconds: float = model.BUILD_SECONDS,
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._reach = reach
        self._origin = origin
        self._equip = equip
        self._build_seconds = build_seconds

    async def show(self, agent_id: str) -> Mapping[str, ScriptStatus]:
        """Both scripts as they are now."""
        noted = await self._db.read(lambda connection: store.of_agent(connection, agent_id))
        if not noted:
            return {name: ScriptStatus() for name in PROCESSES}
        processes = await self._processes(agent_id)
        return {name: model.seen(name, noted.get(name, ScriptStatus()), processes) for name in PROCESSES}

    async def retry(self, agent_id: str) -> None:
        """Have both run again, from the build on; a build that runs now is ended.

        Returns when that is certain to happen, before it has. Raises AgentGone, ScriptLaunchFailed.
        """
        await self._roster.get(agent_id)
        try:
            await self._reach.get_warden(agent_id).stop(PROCESSES[BUILD], grace=0)
        except Problem:
            raise ScriptLaunchFailed from None
        await self._db.write(lambda connection: self.enqueue(connection, agent_id, anew=True))
        self._queue.wake()

    def enqueue(self, connection: Connection, agent_id: str, *, anew: bool = False) -> None:
        """Have the scripts run, inside the caller's transaction; those that wait for their turn already will do."""
        payload = model.ANEW if anew else None
        subject = model.subject(agent_id)
        if not any(other.payload in (payload, model.ANEW) for other in work.waiting(connection, model.RUN, subject)):
            work.add(connection, model.RUN, subject, payload)

    async def handle(self, operation: ClaimedOperation) -> None:
        """`agent.scripts`, idempotent. An agent that goes, or whose box goes, is nothing to do: its next start is."""
        agent_id = model.agent_of(operation.subject)
        try:
            agent = await self._roster.get(agent_id)
            run = ScriptRun(operation, agent_id, self._reach.get_warden(agent_id), self._build_seconds)
            await self._run(run, agent, anew=operation.payload == model.ANEW)
        except (AgentNotFound, ContainerNotRunning):
            return

    async def _run(self, run: ScriptRun, agent: Agent, *, anew: bool) -> None:
        try:
            scripts = await manifest.read(run.warden, urlsplit(self._origin(agent.id)).netloc)
            environment = (await self._equip(agent)).environment
            given = {name: value.reveal() for name, value in environment.items()}
            await run.all(scripts, given, anew=anew)
        except ContainerNotRunning:
            raise
        except InvalidManifest as bad:
            await run.fail(bad.message)
        except Problem as problem:
            _log.warning("an agent's scripts could not be run", agent=agent.id, reason=problem.message)
            await run.fail(problem.message)

    async def _processes(self, agent_id: str) -> Mapping[str, ProcessStatus] | None:
        try:
            return await self._reach.get_warden(agent_id).processes()
        except Problem:
            return None
