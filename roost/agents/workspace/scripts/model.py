"""States and limits of scripts, and their status in a container."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from roost.core.problem import InvalidInput, Problem
from roost.warden_client.client import ProcessStatus

BUILD, START = "build", "start"
PROCESSES: Mapping[str, str] = {BUILD: "build", START: "start"}
"""Names of the warden's processes, whose log sources are `script/build` and `script/start`."""

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
        return _pending_status(script)
    if name == BUILD or script.state is not ScriptState.RUNNING:
        return script
    process = processes.get(PROCESSES[START])
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


def _pending_status(script: ScriptStatus) -> ScriptStatus:
    if script.state in {ScriptState.RUNNING, ScriptState.PENDING}:
        return replace(script, state=ScriptState.PENDING, reason="The agent is not running")
    return script


class ScriptLaunchFailed(Problem):
    """The agent has no container to run scripts in."""

    message = "Script launch failed"


class InvalidManifest(InvalidInput):
    """The manifest cannot be read. Callers never get this error; its message becomes the scripts' reason."""

    message = "manifest.json cannot be read"
