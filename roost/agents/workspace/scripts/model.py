"""The scripts in `manifest.json` at the root of the workspace, their states, and their status in a container.

The agent wrote the file, so it is untrusted: malformed content is an InvalidManifest with a reason.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from roost.core.problem import InvalidInput, Problem
from roost.warden_client.client import ProcessStatus, WardenClient
from roost.warden_client.errors import PathRefused, WardenFileNotFound, WardenFileTooLarge, WardenNotAFile

SCRIPTS = BUILD, START = "build", "start"
"""Names of the scripts, and of the warden's processes, whose log sources are `script/build` and `script/start`."""

OPERATION_KIND = "agent.scripts"
REBUILD = {"anew": True}
"""Payload of an operation that repeats a successful build."""

BUILD_TIMEOUT_SECONDS = 300.0
TIMEOUT_EXIT_CODE = 124
STOP_GRACE_SECONDS = 5.0

_SUBJECT = "/scripts"


class ScriptState(StrEnum):
    NOT_CONFIGURED = "Not configured"
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True)
class ScriptStatus:
    """Status of a script; `reason` explains a failure or a wait, `digest` is the manifest's."""

    state: ScriptState = ScriptState.NOT_CONFIGURED
    reason: str | None = None
    exit_code: int | None = None
    digest: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


def operation_subject(agent_id: str) -> str:
    """Return the subject of the operation; it differs from the agent's, whose restart would wait for a build."""
    return f"{agent_id}{_SUBJECT}"


def subject_agent_id(subject: str) -> str:
    return subject.removesuffix(_SUBJECT)


def current_status(name: str, script: ScriptStatus, processes: Mapping[str, ProcessStatus] | None) -> ScriptStatus:
    """Return the stored status, corrected by the container's processes; None without a container."""
    if processes is None:
        if script.state in {ScriptState.RUNNING, ScriptState.PENDING}:
            return replace(script, state=ScriptState.PENDING, reason="The agent is not running")
        return script
    if name == BUILD or script.state is not ScriptState.RUNNING:
        return script
    process = processes.get(START)
    if process is None or (process.state == "exited" and process.exit_code is None):
        return replace(script, state=ScriptState.PENDING, reason="The agent's container was restarted")
    if process.state == "running":
        return replace(script, started_at=process.started_at)
    code = process.exit_code
    return replace(
        script,
        state=ScriptState.FAILED,
        reason=f"It ended with code {code}" + (" and is restarted" if process.state == "backoff" else ""),
        exit_code=code,
        started_at=process.started_at,
    )


class ScriptLaunchFailed(Problem):
    """The agent has no container to run scripts in."""

    message = "Script launch failed"


class InvalidManifest(InvalidInput):
    """The manifest cannot be read. Callers never get this error; its message becomes the scripts' reason."""

    message = "manifest.json cannot be read"


MANIFEST_PATH = "manifest.json"
MANIFEST_LIMIT = 1024**2
SCRIPT_LIMIT = 64 * 1024
HOST_PLACEHOLDER = "__AGENT_HOST__"


@dataclass(frozen=True)
class ManifestScripts:
    """Shell commands, None if missing; `digest` identifies the manifest."""

    build: str | None = None
    start: str | None = None
    digest: str = ""


async def read_manifest(warden: WardenClient, host: str) -> ManifestScripts:
    """Read the agent's scripts and fill in its public host. Raises InvalidManifest and the warden's errors."""
    try:
        return parse_manifest(await warden.read(MANIFEST_PATH, limit=MANIFEST_LIMIT), host)
    except WardenFileNotFound:
        return ManifestScripts()
    except WardenFileTooLarge:
        raise InvalidManifest(f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB") from None
    except WardenNotAFile:
        raise InvalidManifest(f"{MANIFEST_PATH} is not a regular file") from None
    except PathRefused:
        raise InvalidManifest(f"{MANIFEST_PATH} leads out of the workspace") from None


def parse_manifest(raw: bytes, host: str) -> ManifestScripts:
    """Parse a manifest and fill in the agent's public host. Raises InvalidManifest."""
    scripts = decode_manifest(raw).get("scripts")
    if scripts is None:
        return ManifestScripts()
    scripts = _parse_object(scripts, "scripts")
    digest = hashlib.sha256(raw).hexdigest()
    build, start = (parse_script(scripts.get(name), f"scripts.{name}", host) for name in (BUILD, START))
    return ManifestScripts(build, start, digest)


def decode_manifest(raw: bytes) -> dict[str, Any]:
    """Return the object in a manifest. Raises InvalidManifest."""
    try:
        manifest = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidManifest(f"{MANIFEST_PATH} is not valid JSON") from None
    return _parse_object(manifest, MANIFEST_PATH)


def encode_manifest(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest as a file."""
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n".encode()


def parse_script(text: object, where: str, host: str = HOST_PLACEHOLDER) -> str | None:
    """Return a script with the agent's public host filled in, None for a blank one. Raises InvalidManifest."""
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidManifest(f"{where} is not a string")
    text = text.replace(HOST_PLACEHOLDER, host)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidManifest(f"{where} is not valid text") from None
    if "\0" in text:
        raise InvalidManifest(f"{where} holds a NUL character")
    if size > SCRIPT_LIMIT:
        raise InvalidManifest(f"{where} is longer than {SCRIPT_LIMIT // 1024} KiB")
    return text if text.strip() else None


def _parse_object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidManifest(f"{name} is not an object")
    return cast("dict[str, Any]", value)
