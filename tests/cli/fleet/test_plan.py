"""Plans: the requests of a plan, followed by a server, leave nothing to plan, and nothing else is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.cli.fleet.document import FleetAgent, FleetSecret, parse_task_record
from roost.cli.fleet.live import FleetRequest, LiveAgent, LiveTask
from roost.cli.fleet.plan import Change, PlanInputs, PlanRefused, check_agent, plan_agent, plan_secrets
from roost.cli.fleet.skills import ResolvedSkill

PATH = "/v0/agents/a1"
SECRETS = {name: {"id": name.lower(), "name": name, "type": "secret"} for name in ("A", "B", "C")}
ENVIRONMENT = {"BOT": "123456789:new-token-1111", "OTHER": "123456789:old-token-2222"}
LIBRARY = [(name, version) for name in ("x", "y", "z") for version in ("1.0.0", "1.1.0")]


@dataclass
class AgentModel:
    """What a server has of one agent, changed by requests as the API documents them."""

    live: LiveAgent
    written: list[str] = field(default_factory=list)

    def follow(self, request: FleetRequest) -> None:
        method, (part, *rest) = request.method, request.path.removeprefix(f"{PATH}/").split("/")
        self.written.append(part)
        getattr(self, f"_{part}")(method, rest, request.body)

    def _platform(self, _: str, __: Sequence[str], body: Any) -> None:
        self.live = replace(self.live, profile={**self.live.profile, **body})

    def _secrets(self, method: str, rest: Sequence[str], body: Any) -> None:
        names = {secret["id"]: name for name, secret in SECRETS.items()}
        if method == "DELETE":
            kept = {name: synced for name, synced in self.live.secrets.items() if name != names[rest[0]]}
        else:
            kept = {**self.live.secrets, **{names[one]: False for one in body["secretIds"]}}
        self.live = replace(self.live, secrets=kept)

    def _restart(self, *_: Any) -> None:
        self.live = replace(self.live, secrets=dict.fromkeys(self.live.secrets, True), status="running")

    def _channels(self, method: str, rest: Sequence[str], body: Any) -> None:
        channels = dict(self.live.channels or {})
        present = channels.pop(rest[0], {"enabled": True, "dmPolicy": "open", "allowFrom": [], "botTokenHint": None})
        if method == "POST":
            hint = {"botTokenHint": body["botToken"][-4:]} if "botToken" in body else {}
            channels[rest[0]] = {**present, **{key: body[key] for key in body if key != "botToken"}, **hint}
        self.live = replace(self.live, channels=channels)

    def _skills(self, method: str, rest: Sequence[str], body: Any) -> None:
        skills = {skill["skillId"]: skill for skill in self.live.skills}
        if method == "DELETE":
            del skills[rest[0]]
        else:
            name, version = (body.get("skillCid") or body["skillCids"][0]).split("@")
            before = skills.get(name)
            assert (before is not None) is (rest[1:] == ["update"])
            assert before is None or before["version"] < version
            skills[name] = attached(name, version)
        self.live = replace(self.live, skills=list(skills.values()))

    def _tasks(self, method: str, rest: Sequence[str], body: Any) -> None:
        tasks = {task.id: task for task in self.live.tasks or ()}
        present = tasks.pop(rest[0]) if rest else None
        if method != "DELETE":
            task_id = present.id if present else f"n{len(self.written)}"
            before = record("", "x") if present is None else as_record(present)
            tasks[task_id] = live_task(task_id, {**before, **body})
        self.live = replace(self.live, tasks=list(tasks.values()))


def attached(name: str, version: str) -> dict[str, Any]:
    return {"skillId": name, "name": name, "slug": None, "version": version, "skillCid": f"{name}@{version}"}


def resolved(name: str, version: str, *, is_pinned: bool) -> ResolvedSkill:
    return ResolvedSkill(name, name, f"{name}@{version}", version, is_pinned)


def record(name: str, prompt: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "schedule": {"kind": "cron", "expr": "0 0 * * *", "tz": "UTC", "staggerMs": 0},
        "payload": {"kind": "agentTurn", "message": prompt},
        "description": None,
        "enabled": True,
        "delivery": {"mode": "none", "bestEffort": False},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        **more,
    }


def as_record(task: LiveTask) -> dict[str, Any]:
    assert task.task is not None
    return record("", "") | task.task.model_dump(mode="json", by_alias=True, exclude_unset=True)


def live_task(task_id: str, fields: Mapping[str, Any]) -> LiveTask:
    return LiveTask(task_id, fields["name"], parse_task_record(fields))


names = st.sampled_from(["A", "B", "C"])
texts = st.none() | st.sampled_from(["one", "two"])
policies = st.sampled_from(["open", "pairing"])
tasks = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["r", "s", "t"]),
        "schedule": st.sampled_from(["@daily", "0 0 * * *", "every 60m", "every 1h", "0 8 * * * Europe/Berlin"]),
        "prompt": st.sampled_from(["go", " go "]),
    },
    optional={"enabled": st.booleans(), "description": st.just("d")},
)
channel = st.fixed_dictionaries(
    {"botToken": st.sampled_from(["${BOT}", "${OTHER}"])},
    optional={"dmPolicy": policies, "allowFrom": st.lists(st.sampled_from(["1", "2"])), "enabled": st.booleans()},
)
declarations = st.fixed_dictionaries(
    {"name": st.just("Ada")},
    optional={
        "description": texts,
        "model": texts,
        "secrets": st.lists(names, unique=True),
        "channels": st.dictionaries(st.sampled_from(["telegram", "discord"]), channel),
        "tasks": st.lists(tasks, unique_by=lambda task: task["name"]),
        "skills": st.just([]),
    },
)
present_channel = st.fixed_dictionaries(
    {"enabled": st.booleans(), "dmPolicy": policies, "allowFrom": st.just(["1"]), "botTokenHint": st.just("2222")}
)
agents = st.builds(
    LiveAgent,
    id=st.just("a1"),
    name=st.just("Ada"),
    status=st.sampled_from(["running", "not_running", "failed"]),
    profile=st.fixed_dictionaries(dict.fromkeys(("description", "vibe", "emoji", "model"), texts)),
    secrets=st.dictionaries(names, st.booleans()),
    skills=st.lists(st.sampled_from(LIBRARY), unique_by=lambda one: one[0]).map(
        lambda found: [attached(*one) for one in found]
    ),
    channels=st.dictionaries(st.sampled_from(["telegram", "slack"]), present_channel),
    tasks=st.lists(st.sampled_from(["r", "s", "u"]), max_size=4).map(
        lambda found: [live_task(f"t{number}", record(name, "go")) for number, name in enumerate(found)]
    ),
    manifest=st.none(),
)
skills = st.lists(st.tuples(st.sampled_from(LIBRARY), st.booleans()), unique_by=lambda one: one[0][0])


@given(declarations, agents, skills)
def test_a_followed_plan_leaves_nothing_to_plan(declared: Any, live: LiveAgent, wanted: Any) -> None:
    agent = FleetAgent.model_validate(declared, strict=False, extra="forbid")
    chosen = [resolved(*one, is_pinned=pinned) for one, pinned in wanted]
    inputs = PlanInputs(ENVIRONMENT, SECRETS, skills=chosen)
    model = AgentModel(live)
    for change in plan_agent(agent, live, inputs):
        for request in change.requests:
            model.follow(request)
    assert plan_agent(agent, model.live, inputs) == []
    after = names_of(model.live)
    for key, found in after.items():
        if key == "skills":
            expected = sorted(one[0] for one, _ in wanted) if key in declared else after[key]
        else:
            expected = sorted(one if isinstance(one, str) else one["name"] for one in declared.get(key, found))
        assert found == expected
    owners = {"channels": "channels", "tasks": "tasks", "skills": "skills", "secrets": "secrets"}
    for part, key in owners.items():
        assert key in declared or part not in model.written
    kept = live.profile.keys() - agent.profile().keys()
    assert {name: model.live.profile[name] for name in kept} == {name: live.profile[name] for name in kept}


def names_of(live: LiveAgent) -> Mapping[str, Sequence[str]]:
    return {
        "secrets": sorted(live.secrets),
        "channels": sorted(live.channels or {}),
        "tasks": sorted(task.name for task in live.tasks or ()),
        "skills": sorted(skill["name"] for skill in live.skills),
    }


def lines(changes: Sequence[Change]) -> list[str]:
    return [f"{change.action} {change.kind} {change.name} {change.detail}".rstrip() for change in changes]


def test_unchangeable_fields_are_refused() -> None:
    live = LiveAgent("a1", "Ada", engine="fake", template="researcher")
    for fields in ({"engine": "other"}, {"template": "other"}):
        with pytest.raises(PlanRefused, match="cannot become other"):
            check_agent(FleetAgent.model_validate({"name": "Ada", **fields}, strict=False), live)
    check_agent(FleetAgent(name="Ada", engine="fake"), live)
    with pytest.raises(PlanRefused, match="there is no secret NONE"):
        plan_agent(FleetAgent(name="Ada", secrets=["NONE"]), live, PlanInputs({}))


def test_secrets_are_sent_if_they_are_missing_or_may_be_read() -> None:
    declared = [
        FleetSecret.model_validate({"name": "NEW", "value": "${V}"}),
        FleetSecret.model_validate({"name": "A", "value": "${V}"}),
        FleetSecret.model_validate({"name": "L", "type": "variable", "value": "x"}),
    ]
    known = {**SECRETS, "L": {"id": "l", "name": "L", "type": "variable", "value": "y"}}
    inputs = PlanInputs({"V": "very-secret"}, known)
    changes = list(plan_secrets(declared, inputs))
    assert lines(changes) == ["+ secret NEW", "~ secret L another value"]
    assert changes[0].environment == ["V"]
    assert "very-secret" not in repr(changes)
    assert len(list(plan_secrets(declared, replace(inputs, sends_values=True)))) == 3
    readable = [FleetSecret.model_validate({"name": "L", "type": "variable", "value": "${V}"})]
    assert lines(list(plan_secrets(readable, inputs))) == ["~ secret L new value"]
    assert list(plan_secrets(readable, replace(inputs, environment={}))) == []
    with pytest.raises(PlanRefused, match="secret L: is a variable"):
        list(plan_secrets([FleetSecret.model_validate({"name": "L", "value": "${V}"})], inputs))


def test_a_failed_gateway_is_restarted_and_one_with_old_values() -> None:
    agent = FleetAgent(name="Ada", secrets=["A"])
    live = LiveAgent("a1", "Ada", status="running", secrets={"A": True}, tasks=())
    inputs = PlanInputs({}, SECRETS)
    assert plan_agent(agent, live, inputs) == []
    assert lines(plan_agent(agent, live, replace(inputs, changed=frozenset("A")))) == ["~ gateway Ada restart for A"]
    assert lines(plan_agent(agent, replace(live, status="failed"), inputs)) == ["~ gateway Ada restart"]
    assert lines(plan_agent(FleetAgent(name="Ada"), replace(live, secrets={"A": False}), inputs)) == []
