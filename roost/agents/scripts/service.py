"""The scripts of agents: asked for by a start or a retry, run by an operation, watched in the box by its warden.

The operation can be cut off anywhere: a build that it began is found by its name and time, and waited for again.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from sqlalchemy import Connection

from roost import work
from roost.agents.roster.errors import AgentGone
from roost.agents.roster.model import Agent
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.agents.scripts import manifest, model, store
from roost.agents.scripts.errors import BadManifest, ScriptLaunchFailed
from roost.agents.scripts.model import BUILD, PROCESSES, Script
from roost.agents.scripts.run import Run
from roost.core import log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import BoxGone
from roost.drivers.runtime.warden import Process
from roost.work import Claim, Work

Origin = Callable[[str], str]


class Given(Protocol):
    """What an agent's programs are given of its secrets and variables, by name."""

    @property
    def environment(self) -> Mapping[str, Sensitive[str]]: ...


Equip = Callable[[Agent], Awaitable[Given]]
_log = log.get("scripts")


class Scripts:
    """`origin` is an agent's id to its public origin, whose host stands in scripts where the manifest wants it;
    `build_seconds` is how long a build may run.
    """

    def __init__(
        self,
        db: Database,
        queue: Work,
        roster: Roster,
        reach: Reach,
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

    async def show(self, agent_id: str) -> Mapping[str, Script]:
        """Both scripts as they are now."""
        noted = await self._db.read(lambda connection: store.of_agent(connection, agent_id))
        if not noted:
            return {name: Script() for name in PROCESSES}
        processes = await self._processes(agent_id)
        return {name: model.seen(name, noted.get(name, Script()), processes) for name in PROCESSES}

    async def retry(self, agent_id: str) -> None:
        """Have both run again, from the build on; a build that runs now is ended.

        Returns when that is certain to happen, before it has. Raises AgentGone, ScriptLaunchFailed.
        """
        await self._roster.get(agent_id)
        try:
            await self._reach.warden(agent_id).stop(PROCESSES[BUILD], grace=0)
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

    async def handle(self, operation: Claim) -> None:
        """`agent.scripts`, idempotent. An agent that goes, or whose box goes, is nothing to do: its next start is."""
        agent_id = model.agent_of(operation.subject)
        try:
            agent = await self._roster.get(agent_id)
            run = Run(operation, agent_id, self._reach.warden(agent_id), self._build_seconds)
            await self._run(run, agent, anew=operation.payload == model.ANEW)
        except (AgentGone, BoxGone):
            return

    async def _run(self, run: Run, agent: Agent, *, anew: bool) -> None:
        try:
            scripts = await manifest.read(run.warden, urlsplit(self._origin(agent.id)).netloc)
            environment = (await self._equip(agent)).environment
            given = {name: value.reveal() for name, value in environment.items()}
            await run.all(scripts, given, anew=anew)
        except BoxGone:
            raise
        except BadManifest as bad:
            await run.fail(bad.message)
        except Problem as problem:
            _log.warning("an agent's scripts could not be run", agent=agent.id, reason=problem.message)
            await run.fail(problem.message)

    async def _processes(self, agent_id: str) -> Mapping[str, Process] | None:
        try:
            return await self._reach.warden(agent_id).processes()
        except Problem:
            return None
