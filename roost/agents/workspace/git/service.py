"""Git access to the repositories of agents, and pushes to their files."""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import HostAgents, enqueue_once
from roost.agents.workspace.git.push import AgentPush, PushBuild
from roost.agents.workspace.git.recovery import PushRecovery
from roost.agents.workspace.git.request_limits import GitCommandLimiter
from roost.agents.workspace.snapshots.automatic import AutomaticSnapshots
from roost.agents.workspace.snapshots.index import CommittedFiles
from roost.agents.workspace.snapshots.service import read_committed_files
from roost.core import log
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.drivers.git.contract import GitRequest, GitService, PushUnfinished
from roost.warden_client.client import WardenClient
from roost.work import ClaimedOperation, OperationWorker

FINISH_PUSH = "agent.push"
"""Kind of the operations that finish an interrupted push."""
OpenWorkspace = Callable[[Agent], AbstractAsyncContextManager[WardenClient]]
"""Opens the container of an agent, without its gateway if the agent does not run."""
Origin = Callable[[str], str]
RestoreFiles = Callable[[Agent], Awaitable[None]]
"""Restores files of the platform that a push to an agent may have changed."""

_FINISH_SECONDS = 600.0
_CHECK_SECONDS = 5.0
_OUTDATED = "warning: the agent's latest changes may be missing here: {}"
_log = log.get_logger("git")


@dataclass
class AgentGitService:
    """Responses raise AgentNotFound, AgentOnOtherHost, GitUnavailable, TooManyGitRequests before their first byte.

    Changes are committed before references are listed and before a push is accepted.
    """

    _queue: OperationWorker
    _runtimes: AgentRuntimes
    _recovery: PushRecovery
    _build: PushBuild
    _origin: Origin
    _snapshots: AutomaticSnapshots
    _open_workspace: OpenWorkspace
    _restore_files: RestoreFiles
    _limiter: GitCommandLimiter = field(default_factory=GitCommandLimiter, init=False)
    _outdated: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """Why repositories may lack their agents' latest changes, since they were last listed, by agent."""
    _interrupted: set[str] = field(default_factory=set[str], init=False)
    """Agents whose push is finished once their container can be reached."""

    def __post_init__(self) -> None:
        self._queue.handle(FINISH_PUSH, self.handle_unfinished)
        self._check = PeriodicTask("git interrupted pushes", self.finish_reachable, _CHECK_SECONDS)

    async def advertise(self, agent_id: str, service: GitService, protocol: str) -> AsyncGenerator[bytes]:
        """Yield the references that a client can fetch or update, after a commit of what has changed."""
        agent = await self._runtimes.agents.get_here(agent_id)
        async with self._limiter.acquire(agent.tenant_id):
            await self._show_current(agent_id)
            head = _announce_service(service)
            async with aclosing(self._recovery.repositories.serve(agent_id, GitRequest(service, protocol))) as output:
                async for chunk in output:
                    yield head + chunk
                    head = b""

    async def upload_pack(self, agent_id: str, protocol: str, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """Yield what a client asks for: references, or a pack. Raises BadGitRequest before the first byte."""
        agent = await self._runtimes.agents.get_here(agent_id)
        reason = self._outdated.get(agent_id)
        request = GitRequest(GitService.UPLOAD_PACK, protocol, body, _OUTDATED.format(reason) if reason else "")
        async with (
            self._limiter.acquire(agent.tenant_id),
            aclosing(self._recovery.repositories.serve(agent_id, request)) as output,
        ):
            async for chunk in output:
                yield chunk

    async def receive_pack(self, agent_id: str, protocol: str, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """Yield the report of a push, and apply it to the agent's files. Raises BadGitRequest before the first byte."""
        agent = await self._runtimes.agents.get_here(agent_id)
        request = GitRequest(GitService.RECEIVE_PACK, protocol, body)
        push = AgentPush(
            agent_id,
            self._recovery.repositories,
            self._runtimes.get_warden(agent_id).tree,
            urlsplit(self._origin(agent_id)).netloc,
            partial(self._prepare_push, agent_id),
            self._build,
            self._recovery.locks[agent_id],
        )
        self._recovery.live_pushes.add(push)
        try:
            async with (
                self._limiter.acquire(agent.tenant_id),
                aclosing(self._recovery.repositories.receive(agent_id, request, push)) as output,
            ):
                async for chunk in output:
                    yield chunk
        finally:
            self._recovery.live_pushes.discard(push)
            if await self._recovery.find_interrupted(agent_id):
                self._interrupted.add(agent_id)
                self._check.wake()
            if push.is_applied:
                await self._recovery.clear_failure(agent_id)
            if push.is_accepted:
                await self._restore_files(agent)

    def start(self) -> None:
        """Begin to finish the pushes that are interrupted from now on."""
        self._check.start()

    async def stop(self) -> None:
        await self._check.stop()

    async def finish_reachable(self) -> None:
        """Enqueue that interrupted pushes are finished whose containers can be reached again.

        A container that outlived the connection to it is not started again, which would finish the push.
        """
        for agent_id in list(self._interrupted):
            if await self._recovery.find_interrupted(agent_id):
                with suppress(Problem):  # not now
                    await self._enqueue_reachable(agent_id)
            else:
                self._interrupted.discard(agent_id)

    async def _enqueue_reachable(self, agent_id: str) -> None:
        agent = await self._runtimes.agents.get_here(agent_id)
        if await self._runtimes.has_container(agent_id):
            await self._queue.db.write(partial(enqueue_once, kind=FINISH_PUSH, agent=agent))
            self._interrupted.discard(agent_id)

    async def enqueue_unfinished_pushes(self, host_agents: HostAgents) -> None:
        """Enqueue that the pushes to this host's agents that a crash interrupted are finished."""
        for agent in await host_agents.list():
            if await self._recovery.find_interrupted(agent.id):
                await self._queue.db.write(partial(enqueue_once, kind=FINISH_PUSH, agent=agent))

    async def handle_unfinished(self, operation: ClaimedOperation) -> None:
        """Handle `agent.push`, idempotently: opening a workspace finishes the push to it."""
        try:
            agent = await self._runtimes.agents.get_here(operation.subject)
            async with self._open_workspace(agent):
                pass
            await self._restore_files(agent)
        except AgentNotFound:  # deleted while the operation waited
            return
        except Problem:
            self._interrupted.add(operation.subject)
            raise

    async def _show_current(self, agent_id: str) -> None:
        """Make the repository current; one for which that fails now shows the files from before it."""
        try:
            await self._prepare(agent_id)
        except AgentNotFound:
            raise
        except Problem as problem:
            self._outdated[agent_id] = problem.message
            _log.warning("git.not_current", agent=agent_id, reason=problem.message)
        else:
            self._outdated.pop(agent_id, None)

    async def _prepare(self, agent_id: str) -> None:
        if await self._recovery.find_interrupted(agent_id):
            agent = await self._runtimes.agents.get_here(agent_id)
            operation_id = await self._queue.db.write(partial(enqueue_once, kind=FINISH_PUSH, agent=agent))
            await self._queue.wait(operation_id, _FINISH_SECONDS)
            if await self._recovery.find_interrupted(agent_id):
                raise PushUnfinished
        await self._snapshots.commit_changes(agent_id)

    async def _prepare_push(self, agent_id: str) -> CommittedFiles:
        await self._prepare(agent_id)
        return await read_committed_files(self._queue.db, self._snapshots.snapshots, agent_id)


def _announce_service(service: GitService) -> bytes:
    """Return what precedes an advertisement over HTTP (gitprotocol-http(5))."""
    line = f"# service={service}\n".encode()
    return b"%04x%b0000" % (len(line) + 4, line)
