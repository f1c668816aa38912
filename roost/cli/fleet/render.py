"""Agents of a server as the file that `roost apply` takes.

Values of secrets and tokens are not known here: the file names environment variables in their place, which only a
server without them needs.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml

from roost.cli.fleet.document import environment_name, task_document
from roost.cli.fleet.live import LiveAgent, Record
from roost.core.problem import InvalidInput
from roost.core.yaml_document import parse_yaml

_VALUE_LIMIT = 1000
_TOKENS: Mapping[str, Sequence[str]] = {"slack": ("botToken", "appToken")}
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")


class _FleetDumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and repeats what occurs twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the method of the base class
        return True


def _represent_text(_: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_FleetDumper.add_representer(str, _represent_text)


def render_fleet(agents: Sequence[LiveAgent], secrets: Mapping[str, Record]) -> str:
    """Return the file of agents with the tenant's secrets that they have."""
    attached = dict.fromkeys(name for agent in agents for name in agent.secrets)
    document: dict[str, Any] = {"version": 1}
    if attached:
        document["secrets"] = [_render_secret(secrets[name], one) for name, one in _name_variables(attached).items()]
    document["agents"] = [_render_agent(agent) for agent in agents]
    return dump_yaml(document)


def dump_yaml(document: Mapping[str, Any]) -> str:
    return yaml.dump(document, Dumper=_FleetDumper, sort_keys=False, allow_unicode=True, width=120)


def is_expressible(value: Any) -> bool:
    """Return whether a file can have this value: no control characters, no other line breaks."""
    try:
        parse_yaml(dump_yaml({"value": value}))
    except InvalidInput:
        return False
    return True


def _name_variables(names: Collection[str]) -> Mapping[str, str]:
    """Return a variable of the environment for each secret: its own name, or one that shells can spell."""
    found: dict[str, str] = {}
    for name in names:
        variable = name if _SHELL_NAME.fullmatch(name) else _variable_name(name) or "SECRET"
        while variable != name and (variable in names or variable in found.values()):
            variable += "_"
        found[name] = variable
    return found


def _render_secret(secret: Record, variable: str) -> dict[str, Any]:
    reference = f"${{{variable}}}"
    if secret["type"] == "secret":
        return {"name": secret["name"], "value": reference}
    value = secret.get("value")
    is_plain = value and len(value) <= _VALUE_LIMIT and not environment_name(value) and is_expressible(value)
    return {"name": secret["name"], "type": secret["type"], "value": value if is_plain else reference}


def _render_agent(agent: LiveAgent) -> dict[str, Any]:
    fields = {"name": agent.name, **agent.profile, "engine": agent.engine, "template": agent.template}
    shown = {name: value for name, value in fields.items() if value is not None and is_expressible(value)}
    tasks = [task_document(one.task) for one in agent.tasks or () if one.task is not None]
    lists: dict[str, Any] = {
        "secrets": list(agent.secrets),
        "skills": [_render_skill(skill) for skill in agent.skills],
        "channels": {name: _render_channel(agent, name, one) for name, one in (agent.channels or {}).items()},
        "tasks": [task for task in tasks if is_expressible(task)],
        "routes": [
            {"path": route["pathPrefix"], "port": route["port"], "protected": route["protected"]}
            for route in agent.routes
        ],
        "scripts": agent.scripts if is_expressible(agent.scripts) else {},
    }
    return shown | {name: value for name, value in lists.items() if value}


def _render_skill(skill: Record) -> dict[str, Any]:
    acknowledged = {"acknowledge": True} if skill["verdict"] == "dangerous" else {}
    if skill["slug"]:
        return {"slug": skill["slug"], "version": skill["version"], **acknowledged}
    return {"cid": skill["skillCid"], "name": skill["name"], **acknowledged}


def _render_channel(agent: LiveAgent, name: str, channel: Record) -> dict[str, Any]:
    fields = {"enabled": channel["enabled"], "dmPolicy": channel["dmPolicy"], "allowFrom": channel["allowFrom"]}
    tokens = {token: f"${{{_variable_name(agent.name, name, token)}}}" for token in _TOKENS.get(name, ("botToken",))}
    return {**tokens, **fields}


def _variable_name(*words: str) -> str:
    """Return the name of an environment variable: `ADA_SLACK_BOT_TOKEN`."""
    separated = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word) for word in words)
    name = _NO_NAME.sub("_", "_".join(separated)).strip("_").upper()
    return f"_{name}" if name[:1].isdigit() else name
