"""Git access to the repositories of agents, and pushes to their files."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from urllib.parse import urlsplit

from roost.agents.git.build import PushBuild
from roost.agents.git.limiter import GitCommandLimiter
from roost.agents.git.push import AgentPush
from roost.agents.git.workspace import apply_commit
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.repository import AgentRepository
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.git.contract import GitRepositories, GitRequest, GitService

Origin = Callable[[str], str]
MakeCurrent = Callable[[str], Awaitable[None]]
"""Commits what has changed in an agent's workspace, so that its repository shows the agent's files as they are."""

_log = log.get_logger("git")


class AgentGitService:
    """Responses raise AgentNotFound, AgentOnOtherHost, GitUnavailable, TooManyGitRequests before their first byte.

    make_current: called before references are listed and before a push is accepted.
    """

    def __init__(
        self,
        agents: AgentRepository,
        runtimes: AgentRuntimes,
        repositories: GitRepositories,
        build: PushBuild,
        origin: Origin,
        make_current: MakeCurrent,
    ) -> None:
        self._agents = agents
        self._runtimes = runtimes
        self._repositories = repositories
        self._build = build
        self._origin = origin
        self._make_current = make_current
        self._limiter = GitCommandLimiter()
        self._pushes = set[AgentPush]()
        self._recovery = asyncio.Lock()

    async def advertise(self, agent_id: str, service: GitService, protocol: str) -> AsyncGenerator[bytes]:
        """Yield the references that a client can fetch or update, after a commit of what has changed."""
        agent = await self._agents.get_here(agent_id)
        async with self._limiter.acquire(agent.tenant_id):
            await self._show_current(agent_id)
            head = _announce_service(service)
            async with aclosing(self._repositories.serve(agent_id, GitRequest(service, protocol))) as output:
                async for chunk in output:
                    yield head + chunk
                    head = b""

    async def upload_pack(self, agent_id: str, protocol: str, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """Yield what a client asks for: references, or a pack. Raises BadGitRequest before the first byte."""
        agent = await self._agents.get_here(agent_id)
        request = GitRequest(GitService.UPLOAD_PACK, protocol, body)
        async with (
            self._limiter.acquire(agent.tenant_id),
            aclosing(self._repositories.serve(agent_id, request)) as output,
        ):
            async for chunk in output:
                yield chunk

    async def receive_pack(self, agent_id: str, protocol: str, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """Yield the report of a push, and apply it to the agent's files. Raises BadGitRequest before the first byte."""
        agent = await self._agents.get_here(agent_id)
        request = GitRequest(GitService.RECEIVE_PACK, protocol, body)
        push = AgentPush(
            agent_id,
            self._repositories,
            self._runtimes.get_warden(agent_id).tree,
            urlsplit(self._origin(agent_id)).netloc,
            partial(self._prepare, agent_id),
            self._build,
        )
        self._pushes.add(push)
        try:
            async with (
                self._limiter.acquire(agent.tenant_id),
                aclosing(self._repositories.receive(agent_id, request, push)) as output,
            ):
                async for chunk in output:
                    yield chunk
        finally:
            self._pushes.discard(push)

    async def finish_interrupted_push(self, agent_id: str) -> None:
        """Apply a push again that a crash interrupted. Raises GitFailed, and as `WardenTree.apply`."""
        if any(push.agent_id == agent_id and push.is_accepted for push in self._pushes):
            return  # it is under way
        async with self._recovery:
            if (push := await self._repositories.find_unfinished_push(agent_id)) is None:
                return
            await apply_commit(self._repositories, self._runtimes.get_warden(agent_id).tree, agent_id, *push)
            await self._repositories.finish_push(agent_id)
            _log.info("push.finished_later", agent=agent_id)

    async def finish_interrupted_pushes(self, agent_ids: Iterable[str]) -> None:
        """Finish the interrupted pushes of agents; log failures, after which the next access tries again."""
        for agent_id in agent_ids:
            try:
                await self.finish_interrupted_push(agent_id)
            except Problem as problem:
                _log.warning("push.recovery_failed", agent=agent_id, reason=problem.message)

    async def _show_current(self, agent_id: str) -> None:
        """Make the repository current; one for which that fails now shows the files from before it."""
        try:
            await self._prepare(agent_id)
        except AgentNotFound:
            raise
        except Problem as problem:
            _log.warning("git.not_current", agent=agent_id, reason=problem.message)

    async def _prepare(self, agent_id: str) -> None:
        await self.finish_interrupted_push(agent_id)
        await self._make_current(agent_id)


def _announce_service(service: GitService) -> bytes:
    """Return what precedes an advertisement over HTTP (gitprotocol-http(5))."""
    line = f"# service={service}\n".encode()
    return b"%04x%b0000" % (len(line) + 4, line)
