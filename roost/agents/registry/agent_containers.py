"""The runtimes of this server as one: each agent has its container in one of them (decision 0056)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, TypeVar

from roost.agents.registry.errors import AgentOnOtherHost
from roost.core import log
from roost.core.machine.disk_space import DiskSpace
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.problem import Problem
from roost.drivers.runtime.contract import (
    Capabilities,
    Container,
    ContainerSpec,
    DiskMeter,
    DiskUsage,
    RelayListener,
    Runtime,
    RuntimeFailed,
)
from roost.warden_client.errors import ContainerNotRunning

T = TypeVar("T")
_ANSWER_SECONDS = 30.0
_log = log.get_logger("containers")


class AgentOwners(Protocol):
    """Which server serves an agent whose runtime all of them share."""

    async def list_foreign(self) -> Collection[str]:
        """List the ids of the agents that other servers serve."""
        ...

    async def find_foreign_host(self, agent_id: str) -> str | None:
        """Return the id of the other server that serves the agent now, None if there is none."""
        ...


@dataclass(frozen=True)
class ContainerSurvey:
    """Containers of agents, and the names of the runtimes that did not answer, of whose agents nothing is known."""

    containers: Sequence[Container]
    silent: Collection[str]


class RuntimeAssignments:
    """The runtimes of this server by name, and which of them each agent has, by default the first."""

    def __init__(
        self, runtimes: Sequence[Runtime], owners: AgentOwners | None = None, arriving: set[str] | None = None
    ) -> None:
        self._owners = owners
        self.by_name: Mapping[str, Runtime] = {runtime.name: runtime for runtime in runtimes}
        self.default = runtimes[0]
        self.moving = set[str]()
        """Agents that may have a container in another runtime beside their own."""
        self.held = set[str]()
        """Agents to whose container nothing connects but by `get_runtime`, and that nothing else starts."""
        self.arriving = set[str]() if arriving is None else arriving
        """Agents of another server that gives them up, while this one opens their relays to serve them."""
        self._names: dict[str, str] = {}

    def assign(self, agent_id: str, runtime: str | None) -> None:
        """Use the runtime of that name for an agent, by default the first."""
        self._names[agent_id] = runtime or self.default.name

    def get_name(self, agent_id: str) -> str:
        return self._names.get(agent_id, self.default.name)

    def get_runtime(self, name: str) -> Runtime:
        """Return a runtime. Raises RuntimeFailed if this server does not have it."""
        if name not in self.by_name:
            raise RuntimeFailed(f"This server has no runtime {name!r}; it has {', '.join(self.by_name)}")
        return self.by_name[name]

    def find_runtime(self, agent_id: str) -> Runtime:
        """Return the runtime of an agent. Raises RuntimeFailed if this server does not have it."""
        return self.get_runtime(self.get_name(agent_id))

    async def find_own_runtime(self, agent_id: str) -> Runtime:
        """Return the runtime of an agent whose container this server is about to change.

        Raises AgentOnOtherHost if another server has taken the agent over, and RuntimeFailed.
        """
        runtime = self.find_runtime(agent_id)
        owners = self._owners if runtime.is_shared else None
        if owners is not None and (host := await owners.find_foreign_host(agent_id)) is not None:
            raise AgentOnOtherHost(host=host)
        return runtime

    def is_shared(self, agent_id: str) -> bool:
        """Return whether any server can serve the agent."""
        runtime = self.by_name.get(self.get_name(agent_id))
        return runtime is not None and runtime.is_shared

    async def ask(self, question: Callable[[Runtime], Awaitable[T]]) -> Mapping[str, T]:
        """Return by name what the runtimes answer, without those that do not. Raises the first error if none does."""

        async def ask_one(runtime: Runtime) -> T:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await question(runtime)

        given = await asyncio.gather(*map(ask_one, self.by_name.values()), return_exceptions=True)
        answers, errors = dict[str, T](), list[BaseException]()
        for name, answer in zip(self.by_name, given, strict=True):
            if not isinstance(answer, BaseException):
                answers[name] = answer
            elif isinstance(answer, Problem | OSError):  # a timeout, too
                errors.append(answer)
                _log.warning("runtime.unanswered", runtime=name, reason=str(answer) or "timeout")
            else:
                raise answer
        if not answers:
            raise errors[0]
        return answers

    async def survey(self) -> ContainerSurvey:
        """List the containers of agents in their own runtimes; stop those that an interrupted move left in others.

        Those of agents that other servers serve are left out.

        Raises RuntimeFailed if no runtime answers.
        """
        found = await self.ask(self._list_own)
        return ContainerSurvey([*chain(*found.values())], self.by_name.keys() - found.keys())

    async def _list_own(self, runtime: Runtime) -> Sequence[Container]:
        found, foreign, own = await runtime.list(), frozenset[str](), list[Container]()
        if runtime.is_shared and self._owners is not None:  # after the containers, of agents that have a row before
            foreign = frozenset(await self._owners.list_foreign())
        for container in found:
            if container.agent_id in foreign:
                continue
            if self.get_name(container.agent_id) == runtime.name:
                own.append(container)
            elif container.agent_id not in self.moving:
                _log.warning("container.copy_stopped", agent=container.agent_id, runtime=runtime.name)
                await runtime.stop(container.agent_id)
        return own


@contextmanager
def mark_agent(marked: set[str], agent_id: str) -> Generator[None]:
    """Have an agent in a set of `RuntimeAssignments` within the block."""
    marked.add(agent_id)
    try:
        yield
    finally:
        marked.discard(agent_id)


class AgentContainers(Runtime):
    """Containers of agents, each in the runtime that the agent has; of a shared one only those of this server."""

    def __init__(
        self, runtimes: Sequence[Runtime], owners: AgentOwners | None = None, arriving: set[str] | None = None
    ) -> None:
        self.assignments = RuntimeAssignments(runtimes, owners, arriving)
        self.name = runtimes[0].name  # pyright: ignore[reportAttributeAccessIssue] - a class variable of others
        self.is_shared = runtimes[0].is_shared  # pyright: ignore[reportAttributeAccessIssue] - as above
        self.disk = _DiskMeters(self.assignments)

    def take_priority(self) -> None:
        for runtime in self.assignments.by_name.values():
            runtime.take_priority()

    def prefer(self, agent_id: str) -> None:
        if (runtime := self.assignments.by_name.get(self.assignments.get_name(agent_id))) is not None:
            runtime.prefer(agent_id)

    def start_slots(self) -> int:
        return self.assignments.default.start_slots()

    async def probe(self) -> Capabilities:
        return await self.assignments.default.probe()

    async def start(self, spec: ContainerSpec) -> Container:
        if spec.agent_id in self.assignments.held:
            raise ContainerNotRunning
        return await (await self.assignments.find_own_runtime(spec.agent_id)).start(spec)

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        await (await self.assignments.find_own_runtime(agent_id)).stop(agent_id, grace)

    async def delete(self, agent_id: str) -> None:
        await (await self.assignments.find_own_runtime(agent_id)).delete(agent_id)

    async def list(self) -> Sequence[Container]:
        """List the containers of the runtimes that answer."""
        return (await self.assignments.survey()).containers

    async def find_container(self, agent_id: str) -> Container | None:
        return await self.assignments.find_runtime(agent_id).find_container(agent_id)

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        def read(runtime: Runtime) -> Awaitable[Mapping[str, int]]:
            return runtime.read_memory([one for one in agent_ids if self.assignments.get_name(one) == runtime.name])

        return {agent: used for part in (await self.assignments.ask(read)).values() for agent, used in part.items()}

    async def list_stored(self) -> Collection[str]:
        return {*chain(*(await self.assignments.ask(lambda runtime: runtime.list_stored())).values())}

    async def connect(self, agent_id: str) -> Stream:
        runtime = self.assignments.by_name.get(self.assignments.get_name(agent_id))
        if runtime is None or agent_id in self.assignments.held:
            raise ContainerNotRunning
        return await runtime.connect(agent_id)

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        if agent_id in self.assignments.arriving:
            return await self.assignments.find_runtime(agent_id).listen(agent_id, relay, handler)
        return await (await self.assignments.find_own_runtime(agent_id)).listen(agent_id, relay, handler)


class _DiskMeters(DiskMeter):
    """Disks of all runtimes; the space is that of the disk with the least."""

    def __init__(self, assignments: RuntimeAssignments) -> None:
        self._assignments = assignments

    def read_space(self) -> DiskSpace:
        spaces = (runtime.disk.read_space() for runtime in self._assignments.by_name.values())
        return min(spaces, key=lambda space: space.free)

    async def measure(self, agent_id: str, *, paced: bool) -> DiskUsage:
        return await self._assignments.find_runtime(agent_id).disk.measure(agent_id, paced=paced)

    def written_bytes(self, containers: Sequence[Container]) -> Mapping[str, int]:
        written: dict[str, int] = {}
        for name, runtime in self._assignments.by_name.items():
            own = [one for one in containers if self._assignments.get_name(one.agent_id) == name]
            written |= runtime.disk.written_bytes(own)
        return written
