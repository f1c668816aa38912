"""What a file declares beyond what a server has, and the requests that remove the difference (decision 0030). Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from roost.agents.library.skills.model import version_key
from roost.agents.setup.channels.model import token_hint
from roost.agents.workspace.scripts.model import MANIFEST_PATH, ScriptState, encode_manifest
from roost.cli.client.session import path_segment
from roost.cli.fleet.document import (
    FleetAgent,
    FleetChannel,
    FleetSecret,
    environment_name,
    schedule_document,
    task_document,
    task_fields,
)
from roost.cli.fleet.live import FleetRequest, LiveAgent, Record, is_expressible
from roost.cli.fleet.skills import ResolvedSkill, skill_key
from roost.core.sensitive import Sensitive

_TEXT_LIMIT = 60
_SCHEDULES = ("at", "every", "cron")


class Action(StrEnum):
    ADD = "+"
    CHANGE = "~"
    REMOVE = "-"


@dataclass(frozen=True)
class Change:
    """One difference, and the requests that remove it. environment: names of variables whose values it sends."""

    action: Action
    kind: str
    name: str
    detail: str = ""
    requests: Sequence[FleetRequest] = ()
    environment: Sequence[str] = ()


@dataclass(frozen=True)
class PlanInputs:
    """What else decides a plan.

    environment: variables of the caller. secrets: records of the tenant by name. declared: names of the secrets of the
    file. changed: names of those that get another value. skills: those of the agent, resolved. sends_values: whether
    values and tokens are sent that may be equal.
    """

    environment: Mapping[str, str]
    secrets: Mapping[str, Record] = field(default_factory=dict[str, Record])
    declared: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    skills: Sequence[ResolvedSkill] = ()
    sends_values: bool = False


class PlanRefused(Exception):  # noqa: N818 - describes the plan
    """What the file declares cannot be made of what the server has."""


def plan_secrets(secrets: Sequence[FleetSecret], inputs: PlanInputs) -> Iterator[Change]:
    """Yield the changes of the tenant's secrets. Raises PlanRefused."""
    for secret in secrets:
        present, variable = inputs.secrets.get(secret.name), environment_name(secret.value)
        names = [] if variable is None else [variable]
        value = secret.value if variable is None else inputs.environment.get(variable, "")
        if present is None:
            body = {"name": secret.name, "value": value, "type": secret.type.value}
            yield Change(Action.ADD, "secret", secret.name, "", [FleetRequest("POST", "/v0/secrets", body)], names)
        elif present["type"] != secret.type:
            raise PlanRefused(f"secret {secret.name}: is a {present['type']}; delete it to make it a {secret.type}")
        elif inputs.sends_values or (value and present["type"] == "variable" and present.get("value") != value):
            path = f"/v0/secrets/{path_segment(present['id'])}"
            detail = "new value" if names else "another value"
            requests = [FleetRequest("PUT", path, {"value": value})]
            yield Change(Action.CHANGE, "secret", secret.name, detail, requests, names)


def check_agent(agent: FleetAgent, live: LiveAgent) -> None:
    """Check what cannot change. Raises PlanRefused."""
    for name, wanted, present in (("engine", agent.engine, live.engine), ("template", agent.template, live.template)):
        if wanted is not None and wanted != present:
            raise PlanRefused(
                f"{name}: is {present or 'none'}, and cannot become {wanted}; delete the agent to create it again"
            )


def create_request(agent: FleetAgent, inputs: PlanInputs) -> FleetRequest:
    """Return the request that creates an agent; what else it declares follows. Raises PlanRefused."""
    fields = {"engine": agent.engine, "templateId": agent.template, **agent.profile()}
    body: dict[str, Any] = {"name": agent.name, **{name: value for name, value in fields.items() if value is not None}}
    if agent.secrets:
        if absent := [name for name in agent.secrets if name not in inputs.secrets]:
            raise PlanRefused(f"there is no secret {absent[0]}")
        body["secretIds"] = [inputs.secrets[name]["id"] for name in agent.secrets]
    if agent.channels:
        body["channels"] = {name: _new_channel(channel, inputs.environment) for name, channel in agent.channels.items()}
    return FleetRequest("POST", "/v0/agents", body)


def plan_agent(agent: FleetAgent, live: LiveAgent, inputs: PlanInputs) -> Sequence[Change]:
    """Return the changes of an agent, tasks last, because only the running engine stores them. Raises PlanRefused."""
    return [
        *_plan_profile(agent, live),
        *_plan_attached_secrets(agent, live, inputs),
        *_plan_channels(agent, live, inputs),
        *plan_skills(agent, live, inputs),
        *_plan_scripts(agent, live),
        *_plan_routes(agent, live),
        *_plan_restart(agent, live, inputs),
        *plan_tasks(agent, live),
    ]


def plan_skills(agent: FleetAgent, live: LiveAgent, inputs: PlanInputs) -> Iterator[Change]:
    """Yield the changes of an agent's skills; a skill that the library lacks has no requests yet."""
    if agent.skills is None:
        return
    path = f"{live.path}/skills"
    for record in live.skills:
        if not any(skill.is_attached(record) for skill in inputs.skills):
            requests = [FleetRequest("DELETE", f"{path}/{path_segment(record['skillId'])}")]
            yield Change(Action.REMOVE, "skill", skill_key(record), str(record["version"]), requests)
    for skill in inputs.skills:
        present = next((record for record in live.skills if skill.is_attached(record)), None)
        if present is None:
            yield Change(Action.ADD, "skill", skill.label, _describe_skill(skill), _attach(path, skill))
        elif not skill.is_satisfied(present):
            detail = f"{present['version']} -> {_describe_skill(skill)}"
            yield Change(Action.CHANGE, "skill", skill.label, detail, _replace_skill(path, present, skill))


def plan_tasks(agent: FleetAgent, live: LiveAgent) -> Iterator[Change]:
    """Yield the changes of an agent's tasks; those that a file cannot declare stay."""
    if agent.tasks is None:
        return
    if live.tasks is None:
        yield Change(Action.CHANGE, "tasks", agent.name, "compared when the agent runs")
        return
    path, declared = f"{live.path}/tasks", [task_fields(task) for task in agent.tasks]
    kept: dict[str, str] = {}
    for one in live.tasks:
        is_declared = any(fields["name"] == one.name for fields in declared) and one.name not in kept
        if is_declared:
            kept[one.name] = one.id
        elif one.task is not None and is_expressible(task_document(one.task)):
            requests = [FleetRequest("DELETE", f"{path}/{path_segment(one.id)}")]
            yield Change(Action.REMOVE, "task", one.name, "", requests)
    for fields in declared:
        present = next((one for one in live.tasks if one.id == kept.get(fields["name"])), None)
        if present is None:
            yield Change(Action.ADD, "task", fields["name"], "", [FleetRequest("POST", path, fields)])
            continue
        before = task_fields(present.task) if present.task else {}
        changed = {name: value for name, value in fields.items() if before.get(name) != value}
        if changed:
            requests = [FleetRequest("PUT", f"{path}/{path_segment(present.id)}", changed)]
            yield Change(Action.CHANGE, "task", fields["name"], _describe_fields(before, changed), requests)


def _plan_profile(agent: FleetAgent, live: LiveAgent) -> Iterator[Change]:
    changed = {name: value for name, value in agent.profile().items() if live.profile.get(name) != value}
    if changed:
        requests = [FleetRequest("PATCH", f"{live.path}/platform/metadata", changed)]
        yield Change(Action.CHANGE, "agent", agent.name, _describe_fields(live.profile, changed), requests)


def _plan_attached_secrets(agent: FleetAgent, live: LiveAgent, inputs: PlanInputs) -> Iterator[Change]:
    if agent.secrets is None:
        return
    for name in live.secrets:  # first, because an agent can have one credential of a provider
        if name not in agent.secrets:
            path = f"{live.path}/secrets/{path_segment(inputs.secrets[name]['id'])}"
            yield Change(Action.REMOVE, "attached secret", name, "", [FleetRequest("DELETE", path)])
    for name in agent.secrets:
        if name not in inputs.secrets and name not in inputs.declared:
            raise PlanRefused(f"there is no secret {name}; declare it in `secrets`, or `roost secrets create {name}`")
        if name not in live.secrets:
            ids = [inputs.secrets[name]["id"]] if name in inputs.secrets else []
            requests = [FleetRequest("POST", f"{live.path}/secrets", {"secretIds": ids})]
            yield Change(Action.ADD, "attached secret", name, "", requests)


def _plan_channels(agent: FleetAgent, live: LiveAgent, inputs: PlanInputs) -> Iterator[Change]:
    if agent.channels is None:
        return
    present = live.channels or {}
    for name in present:
        if name not in agent.channels:
            yield Change(Action.REMOVE, "channel", name, "", [FleetRequest("DELETE", f"{live.path}/channels/{name}")])
    for name, channel in agent.channels.items():
        path, environment = f"{live.path}/channels/{name}", list(channel.tokens.values())
        if name not in present:
            requests = [FleetRequest("POST", path, _new_channel(channel, inputs.environment))]
            yield Change(Action.ADD, "channel", name, "", requests, environment)
            continue
        fields = _channel_fields(channel)
        changed = {key: value for key, value in fields.items() if present[name].get(key) != value}
        tokens = _changed_tokens(channel, present[name], inputs)
        if changed or tokens:
            details = [_describe_fields(present[name], changed)] if changed else []
            details += [f"new {key}" for key in tokens]
            names = [channel.tokens[key] for key in tokens]
            requests = [FleetRequest("POST", path, {**changed, **tokens})]
            yield Change(Action.CHANGE, "channel", name, ", ".join(details), requests, names)


def _plan_scripts(agent: FleetAgent, live: LiveAgent) -> Iterator[Change]:
    if agent.scripts is None:
        return
    declared = agent.scripts.model_dump(exclude_none=True)
    run = FleetRequest("POST", f"{live.path}/scripts/retry")
    if declared != live.scripts:
        base = {"version": 1, "agent": {"name": agent.name}} if live.manifest is None else live.manifest
        content = encode_manifest({**base, "scripts": declared})
        path = f"{live.path}/files/content?path={MANIFEST_PATH}"
        write = FleetRequest("PUT", path, content=content, media_type="application/octet-stream")
        action = Action.CHANGE if live.scripts else Action.ADD
        yield Change(action if declared else Action.REMOVE, "scripts", agent.name, ", ".join(declared), [write, run])
    elif any(live.script_states.get(name) == ScriptState.NOT_CONFIGURED for name in declared):
        yield Change(Action.CHANGE, "scripts", agent.name, "run", [run])


def _plan_routes(agent: FleetAgent, live: LiveAgent) -> Iterator[Change]:
    """Yield one change of all routes, which the server replaces at once."""
    if agent.routes is None:
        return
    declared = [{"port": one.port, "pathPrefix": one.path, "protected": one.protected} for one in agent.routes]
    before, after = ({_describe_route(route) for route in routes} for routes in (live.routes, declared))
    if before != after:
        details = [f"- {route}" for route in sorted(before - after)]
        details += [f"+ {route}" for route in sorted(after - before)]
        requests = [FleetRequest("PUT", f"{live.path}/port-forwarding", {"mappings": declared})]
        yield Change(Action.CHANGE, "routes", agent.name, ", ".join(details), requests)


def _plan_restart(agent: FleetAgent, live: LiveAgent, inputs: PlanInputs) -> Iterator[Change]:
    """Yield a restart of a gateway that failed, or that does not use the declared secrets."""
    names: list[str] = []
    if agent.secrets is not None and live.status == "running":
        removed = [name for name in live.secrets if name not in agent.secrets]
        names = [*removed, *(name for name in agent.secrets if not live.secrets.get(name) or name in inputs.changed)]
    if names or live.status == "failed":
        requests = [FleetRequest("POST", f"{live.path}/restart", {})]
        reason = f" for {', '.join(names)}" if names else ""
        yield Change(Action.CHANGE, "gateway", agent.name, f"restart{reason}", requests)


def _new_channel(channel: FleetChannel, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the body for a new channel, which asks strangers for a code unless the file says who may write."""
    fields = _channel_fields(channel)
    if not fields.keys() & {"dmPolicy", "allowFrom"}:
        fields["dmPolicy"] = "pairing"
    return {**fields, **{key: environment.get(name, "") for key, name in channel.tokens.items()}}


def _channel_fields(channel: FleetChannel) -> dict[str, Any]:
    """Return the fields that the file has, without tokens."""
    allowed = list(dict.fromkeys(channel.allow_from))
    fields = {"enabled": channel.enabled, "dmPolicy": channel.dm_policy, "allowFrom": allowed}
    names = {"enabled": "enabled", "dmPolicy": "dm_policy", "allowFrom": "allow_from"}
    return {key: value for key, value in fields.items() if names[key] in channel.model_fields_set}


def _changed_tokens(channel: FleetChannel, present: Record, inputs: PlanInputs) -> dict[str, str]:
    """Return the tokens of the environment that differ from the present ones as far as those can be seen."""
    found = {key: inputs.environment.get(name, "") for key, name in channel.tokens.items()}
    return {
        key: token
        for key, token in found.items()
        if token and (inputs.sends_values or token_hint(Sensitive(token.strip())) != present.get(f"{key}Hint"))
    }


def _attach(path: str, skill: ResolvedSkill) -> Sequence[FleetRequest]:
    return [FleetRequest("POST", path, {"skillCids": [skill.cid], "acknowledge": skill.acknowledge})]


def _replace_skill(path: str, present: Record, skill: ResolvedSkill) -> Sequence[FleetRequest]:
    """Return an update, or for an older version its detachment and attachment."""
    attached = f"{path}/{path_segment(present['skillId'])}"
    is_same = skill.key == skill_key(present) and skill.version is not None
    if is_same and version_key(skill.version or "") > version_key(present["version"]):
        body = {"skillCid": skill.cid, "acknowledge": skill.acknowledge}
        return [FleetRequest("POST", f"{attached}/update", body)]
    return [FleetRequest("DELETE", attached), *_attach(path, skill)]


def _describe_route(route: Record) -> str:
    return f"{route['pathPrefix']} to {route['port']}{'' if route['protected'] else ' for anyone'}"


def _describe_skill(skill: ResolvedSkill) -> str:
    source = "" if skill.preparation is None else f" (from the {skill.origin})"
    return f"{skill.version or skill.cid}{source}"


def _describe_fields(before: Mapping[str, Any], changed: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shorten(before.get(name))} -> {_shorten(value)}" for name, value in changed.items())


def _shorten(value: Any) -> str:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        known = {**fields, "schedule": schedule_document(fields) if fields.get("kind") in _SCHEDULES else None}
        value = next((known[key] for key in ("schedule", "message", "text", "mode") if known.get(key)), "")
    if isinstance(value, list):
        value = ", ".join(cast("list[str]", value))
    text = "none" if value in {None, ""} else str(value)
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LIMIT else f"{line[: _TEXT_LIMIT - 3]}..."
