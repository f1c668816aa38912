"""Planning a fleet against a server, and applying the plan agent by agent.

An agent that is new or lacks a skill of the library is planned again once it and they exist, so that requests always
remove a difference that is there. Interrupted anywhere, the next plan has the rest.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from roost.agents.workspace.scripts.model import InvalidManifest
from roost.cli.client.session import path_segment
from roost.cli.fleet.document import FleetAgent, FleetDocument
from roost.cli.fleet.live import PARTS, FleetRequestRefused, FleetServer, LiveAgent, Record
from roost.cli.fleet.plan import (
    Action,
    Change,
    PlanInputs,
    PlanRefused,
    check_agent,
    create_request,
    plan_agent,
    plan_secrets,
    plan_tasks,
)
from roost.cli.fleet.skills import SkillNotDeclared, SkillResolver
from roost.core import clock

_FAILURES = (PlanRefused, SkillNotDeclared, FleetRequestRefused, InvalidManifest)
_WAIT_SECONDS = 90.0
_TASKS_SECONDS = 15.0
_POLL_SECONDS = 0.5
_TASK = "task"


@dataclass(frozen=True)
class AgentPlan:
    """The changes of one agent, or why there are none. agent_id: None for one that is to be created."""

    agent: FleetAgent
    agent_id: str | None = None
    changes: Sequence[Change] = ()
    refusal: str | None = None

    @property
    def is_new(self) -> bool:
        return self.agent_id is None and self.refusal is None

    @property
    def all_changes(self) -> Sequence[Change]:
        """All changes, the creation of the agent among them."""
        return [Change(Action.ADD, "agent", self.agent.name), *self.changes] if self.is_new else self.changes


@dataclass(frozen=True)
class FleetPlan:
    """The changes of a fleet. refusal: why the secrets cannot be as declared."""

    secrets: Sequence[Change]
    agents: Sequence[AgentPlan]
    refusal: str | None = None

    @property
    def changes(self) -> Sequence[Change]:
        return [*self.secrets, *(change for plan in self.agents for change in plan.all_changes)]

    @property
    def refusals(self) -> Sequence[str]:
        of_agents = (f"agent {plan.agent.name}: {plan.refusal}" for plan in self.agents if plan.refusal)
        return [*([self.refusal] if self.refusal else []), *of_agents]

    def list_missing(self, environment: Mapping[str, str]) -> Sequence[str]:
        """List the environment variables that the changes need and that are not set."""
        names = (name for change in self.changes for name in change.environment)
        return [name for name in dict.fromkeys(names) if not environment.get(name)]


@dataclass(frozen=True)
class PartResult:
    """Result of the changes of the secrets or of one agent. waits_for: what an agent lacks to start."""

    name: str
    failure: str | None = None
    waits_for: Sequence[str] = ()


class FleetPlanner:
    def __init__(
        self, server: FleetServer, fleet: FleetDocument, folder: Path, environment: Mapping[str, str], *, sends: bool
    ) -> None:
        """Plan a fleet. folder: where paths of skills begin. sends: whether values are sent that may be equal."""
        self._server = server
        self._fleet = fleet
        self._resolver = SkillResolver(server, folder)
        self._inputs = PlanInputs(
            environment, declared=frozenset(secret.name for secret in fleet.secrets), sends_values=sends
        )

    def plan(self) -> FleetPlan:
        """Compare the file with the server. Raises FleetRequestRefused if the server cannot be read."""
        agents = self._server.list_agents()
        self._read_secrets()
        secrets: Sequence[Change] = ()
        refusal: str | None = None
        try:
            secrets = list(plan_secrets(self._fleet.secrets, self._inputs))
        except PlanRefused as refused:
            refusal = str(refused)
        changed = frozenset(change.name for change in secrets if change.action is Action.CHANGE)
        self._inputs = replace(self._inputs, changed=changed)
        return FleetPlan(secrets, [self._plan_agent(agent, agents) for agent in self._fleet.agents], refusal)

    def apply(self, plan: FleetPlan) -> Iterator[PartResult]:
        """Apply a plan; yield the result of each part that has changes."""
        if plan.secrets:
            yield self._attempt("secrets", lambda: self._send(plan.secrets))
            self._read_secrets()
            self._inputs = replace(self._inputs, changed=frozenset())  # agents tell now whether they use them
        for one in plan.agents:
            if one.refusal is None and (one.is_new or one.changes):
                yield self._attempt(one.agent.name, lambda one=one: self._apply_agent(one))

    @staticmethod
    def _attempt(name: str, act: Callable[[], LiveAgent | None]) -> PartResult:
        try:
            live = act()
        except _FAILURES as failure:
            return PartResult(name, failure=str(failure))
        return PartResult(name, waits_for=live.waits_for if live else ())

    def _read_secrets(self) -> None:
        self._inputs = replace(self._inputs, secrets=self._server.list_secrets())

    def _plan_agent(self, agent: FleetAgent, records: Sequence[Record]) -> AgentPlan:
        found = [record["agentId"] for record in records if record["name"] == agent.name]
        try:
            if len(found) > 1:
                raise PlanRefused(f"{len(found)} agents have this name")
            if not found:
                empty = LiveAgent("", agent.name, tasks=())
                changes = plan_agent(agent, empty, self._resolve_skills(agent))
                return AgentPlan(agent, None, [change for change in changes if change.kind != "agent"])
            live = self._read(agent, found[0])
            check_agent(agent, live)
            return AgentPlan(agent, found[0], plan_agent(agent, live, self._resolve_skills(agent)))
        except _FAILURES as failure:
            return AgentPlan(agent, refusal=str(failure))

    def _read(self, agent: FleetAgent, agent_id: str) -> LiveAgent:
        parts = {name for name in PARTS if getattr(agent, name) is not None}
        return self._server.read_agent(agent_id, parts)

    def _resolve_skills(self, agent: FleetAgent) -> PlanInputs:
        return replace(self._inputs, skills=[self._resolver.resolve(skill) for skill in agent.skills or ()])

    def _apply_agent(self, plan: AgentPlan) -> LiveAgent:
        agent, agent_id = plan.agent, plan.agent_id
        if agent_id is None:
            created = self._server.send(create_request(agent, self._inputs))
            agent_id = str(created["agent"]["agentId"])
        for skill in self._resolve_skills(agent).skills:
            if skill.preparation is not None:  # the library lacks it
                self._server.send(skill.preparation)
                self._resolver.forget_library()
        live = self._read(agent, agent_id)
        changes = plan_agent(agent, live, self._resolve_skills(agent))
        self._send([change for change in changes if change.kind != _TASK])
        if agent.tasks is not None:
            awaited = self._list_template_tasks(live) if live.tasks is None or plan.is_new else frozenset[str]()
            live = self._wait_for_tasks(agent, agent_id, awaited)
            self._send(list(plan_tasks(agent, live)))
        return live

    def _send(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for request in change.requests:
                try:
                    self._server.send(request)
                except FleetRequestRefused as refused:
                    raise PlanRefused(f"{change.kind} {change.name}: {refused}") from None

    def _list_template_tasks(self, live: LiveAgent) -> frozenset[str]:
        """Return the names of the tasks that the agent gets from its template once it runs."""
        if live.template is None:
            return frozenset()
        found = self._server.find(f"/v0/templates/{path_segment(live.template)}")
        return (
            frozenset(task["name"] for task in found["template"]["manifest"].get("tasks", ())) if found else frozenset()
        )

    def _wait_for_tasks(self, agent: FleetAgent, agent_id: str, awaited: frozenset[str]) -> LiveAgent:
        """Wait until the agent runs, and a while for the awaited tasks. Raises PlanRefused if it does not run."""
        start = clock.monotonic_seconds()
        running_since: float | None = None
        while True:
            live, now = self._read(agent, agent_id), clock.monotonic_seconds()
            if live.tasks is not None:
                running_since = running_since or now
                if awaited <= {task.name for task in live.tasks} or now - running_since > _TASKS_SECONDS:
                    return live
            elif now - start > _WAIT_SECONDS or live.waits_for or live.status == "failed":
                raise PlanRefused(f"tasks: the agent does not run: {live.reason or live.status}")
            time.sleep(_POLL_SECONDS)
