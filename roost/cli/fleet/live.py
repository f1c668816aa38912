"""What a server has: its agents, read over the API and rendered as the file that `roost apply` takes.

Values of secrets and tokens are not known here: the file names environment variables in their place, which only a
server without them needs.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2 as httpx
import yaml

from roost.agents.workspace.scripts.model import (
    MANIFEST_LIMIT,
    MANIFEST_PATH,
    InvalidManifest,
    decode_manifest,
    parse_script,
)
from roost.cli.client.session import ServerSession, error_message, path_segment
from roost.cli.fleet.document import FleetTask, environment_name, parse_task_record, task_document
from roost.core.problem import InvalidInput
from roost.core.yaml_document import parse_yaml

_JSON = "application/json"
_TIMEOUT_SECONDS = 900.0  # a template's agent may need that long; the server answers all else at once
_NOT_FOUND = 404
PROFILE = ("description", "vibe", "emoji", "model")
CHANNELS = ("telegram", "slack", "discord", "whatsapp")
SCRIPTS = ("build", "start")
PARTS = ("channels", "tasks", "scripts", "routes")
"""What takes requests of its own."""
Record = Mapping[str, Any]
_VALUE_LIMIT = 1000
_TOKENS: Mapping[str, Sequence[str]] = {"slack": ("botToken", "appToken")}
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")


class FleetRequestRefused(Exception):  # noqa: N818 - what the server did
    """The server refused a request; the message is its own."""


@dataclass(frozen=True)
class FleetRequest:
    """A request as plain data; `content` are bytes in place of JSON. Its representation shows neither."""

    method: str
    path: str
    body: Any = field(default=None, repr=False)
    content: bytes | None = field(default=None, repr=False)
    media_type: str = _JSON


@dataclass(frozen=True)
class LiveTask:
    """A task of an agent; `task` is None if a file cannot declare it."""

    id: str
    name: str
    task: FleetTask | None


@dataclass(frozen=True)
class LiveAgent:
    """An agent of the server; one that is to be created has no id.

    secrets: whether the gateway uses the present value, by name. channels, tasks, manifest: None if they were not
    asked for, as there are no routes then; tasks also if the agent does not run. waits_for: what its template requires
    and it lacks.
    """

    id: str
    name: str
    engine: str = ""
    status: str = ""
    reason: str | None = None
    profile: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    template: str | None = None
    waits_for: Sequence[str] = ()
    secrets: Mapping[str, bool] = field(default_factory=dict[str, bool])
    skills: Sequence[Record] = ()
    channels: Mapping[str, Record] | None = None
    tasks: Sequence[LiveTask] | None = None
    manifest: Mapping[str, Any] | None = None
    routes: Sequence[Record] = ()
    script_states: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def path(self) -> str:
        return f"/v0/agents/{path_segment(self.id)}"

    @property
    def scripts(self) -> Mapping[str, str]:
        """Scripts of the manifest by their names. Raises InvalidManifest."""
        scripts = (self.manifest or {}).get("scripts")
        texts = cast("dict[str, object]", scripts if isinstance(scripts, dict) else {})
        found = {name: parse_script(texts.get(name), f"scripts.{name}") for name in SCRIPTS}
        return {name: text for name, text in found.items() if text}


class FleetServer:
    """The server of a fleet: requests to it, and reading what it has."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    def get(self, path: str) -> Any:
        """Return the JSON at a path. Raises FleetRequestRefused."""
        return self.send(FleetRequest("GET", path))

    def find(self, path: str) -> Any:
        """Return the JSON at a path, None if there is nothing. Raises FleetRequestRefused."""
        response = self._request(FleetRequest("GET", path), _NOT_FOUND)
        return None if response.status_code == _NOT_FOUND else response.json()

    def find_content(self, path: str) -> bytes | None:
        """Return the bytes at a path, None if there is nothing. Raises FleetRequestRefused."""
        response = self._request(FleetRequest("GET", path), _NOT_FOUND)
        return None if response.status_code == _NOT_FOUND else response.content

    def send(self, request: FleetRequest) -> Any:
        """Send a request and return the JSON of the answer. Raises FleetRequestRefused."""
        return self._request(request).json()

    def list_agents(self) -> Sequence[Record]:
        """List the records of all agents. Raises FleetRequestRefused."""
        return cast("Sequence[Record]", self.get("/v0/agents")["agents"])

    def list_secrets(self) -> Mapping[str, Record]:
        """Return the records of all secrets by their names. Raises FleetRequestRefused."""
        return {secret["name"]: secret for secret in self.get("/v0/secrets")["secrets"]}

    def read_agent(self, agent_id: str, parts: Collection[str] = PARTS) -> LiveAgent:
        """Read an agent; `parts` take requests of their own. Raises FleetRequestRefused, InvalidManifest."""
        path = f"/v0/agents/{path_segment(agent_id)}"
        detail = self.get(path)
        agent = detail["agent"]
        return LiveAgent(
            id=agent["agentId"],
            name=agent["name"],
            engine=agent["engine"],
            status=agent["status"],
            reason=agent["statusReason"],
            profile={name: agent.get(name) for name in PROFILE},
            template=detail["template"]["slug"] if detail["template"] else None,
            waits_for=[item["name"] for item in detail["missing"] if item["required"]],
            secrets={secret["name"]: secret["synced"] for secret in detail["secrets"]},
            skills=detail["skills"],
            channels=self._read_channels(path) if "channels" in parts else None,
            tasks=self._read_tasks(path) if "tasks" in parts else None,
            manifest=self._read_manifest(path) if "scripts" in parts else None,
            routes=self.get(f"{path}/port-forwarding")["mappings"] if "routes" in parts else (),
            script_states={name: detail["lifecycle"][name]["state"] for name in SCRIPTS},
        )

    def _request(self, request: FleetRequest, allowed: int = 0) -> httpx.Response:
        response = self._session.request(
            request.method,
            request.path,
            request.body,
            content=request.content,
            headers=None if request.content is None else {"Content-Type": request.media_type},
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        if response.status_code >= 400 and response.status_code != allowed:
            raise FleetRequestRefused(error_message(response))
        return response

    def _read_channels(self, path: str) -> Mapping[str, Record]:
        found = self.get(f"{path}/channels")
        return {name: found[name] for name in CHANNELS if found.get(name)}

    def _read_tasks(self, path: str) -> Sequence[LiveTask] | None:
        try:
            found = self.get(f"{path}/tasks")["tasks"]
        except FleetRequestRefused:  # only a running engine knows them
            return None
        return [LiveTask(task["id"], task["name"], parse_task_record(task)) for task in found]

    def _read_manifest(self, path: str) -> dict[str, Any] | None:
        """Return the manifest of a workspace, None without one. Raises FleetRequestRefused, InvalidManifest."""
        found = self.find_content(f"{path}/files?path={MANIFEST_PATH}")
        if found is not None and len(found) > MANIFEST_LIMIT:
            raise InvalidManifest(f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB")
        return None if found is None else decode_manifest(found)


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
