"""What a server has: its agents with all that a file can declare of them, read over the API."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from roost.agents.workspace.scripts.model import (
    MANIFEST_LIMIT,
    MANIFEST_PATH,
    InvalidManifest,
    decode_manifest,
    encode_manifest,
    parse_script,
)
from roost.cli.client.session import path_segment
from roost.cli.fleet.document import FleetTask
from roost.cli.fleet.requests import FleetClient, FleetRequestRefused
from roost.cli.fleet.task_fields import parse_task_record

PROFILE = ("description", "vibe", "emoji", "model")
CHANNELS = ("telegram", "slack", "discord", "whatsapp")
SCRIPTS = ("build", "start")
PARTS = ("channels", "tasks", "scripts", "routes")
"""What takes requests of its own."""
Record = Mapping[str, Any]


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


class FleetReader:
    def __init__(self, client: FleetClient) -> None:
        self._client = client

    def list_agents(self) -> Sequence[Record]:
        """List the records of all agents. Raises FleetRequestRefused."""
        return cast("Sequence[Record]", self._client.get("/v0/agents")["agents"])

    def list_secrets(self) -> Mapping[str, Record]:
        """Return the records of all secrets by their names. Raises FleetRequestRefused."""
        return {secret["name"]: secret for secret in self._client.get("/v0/secrets")["secrets"]}

    def read_agent(self, agent_id: str, parts: Collection[str] = PARTS) -> LiveAgent:
        """Read an agent; `parts` take requests of their own. Raises FleetRequestRefused, InvalidManifest."""
        path = f"/v0/agents/{path_segment(agent_id)}"
        detail = self._client.get(path)
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
            routes=self._client.get(f"{path}/port-forwarding")["mappings"] if "routes" in parts else (),
            script_states={name: detail["lifecycle"][name]["state"] for name in SCRIPTS},
        )

    def _read_channels(self, path: str) -> Mapping[str, Record]:
        found = self._client.get(f"{path}/channels")
        return {name: found[name] for name in CHANNELS if found.get(name)}

    def _read_tasks(self, path: str) -> Sequence[LiveTask] | None:
        try:
            found = self._client.get(f"{path}/tasks")["tasks"]
        except FleetRequestRefused:  # only a running engine knows them
            return None
        return [LiveTask(task["id"], task["name"], parse_task_record(task)) for task in found]

    def _read_manifest(self, path: str) -> dict[str, Any] | None:
        """Return the manifest of a workspace, None without one. Raises FleetRequestRefused, InvalidManifest."""
        found = self._client.find_content(f"{path}/files?path={MANIFEST_PATH}")
        if found is not None and len(found) > MANIFEST_LIMIT:
            raise InvalidManifest(f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB")
        return None if found is None else decode_manifest(found)


def encode_scripts(manifest: Mapping[str, Any] | None, name: str, scripts: Mapping[str, str]) -> bytes:
    """Return the manifest of an agent of that name with other scripts, and all else that it has."""
    base = {"version": 1, "agent": {"name": name}} if manifest is None else manifest
    return encode_manifest({**base, "scripts": dict(scripts)})
