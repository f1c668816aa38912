"""What scripts are: their states, the bounds they run in, and what can be seen of them in a box."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from roost.drivers.runtime.warden_client import ProcessStatus

BUILD, START = "build", "start"
PROCESSES: Mapping[str, str] = {BUILD: "build", START: "start"}
"""The names under which the warden watches them, and their logs are known as `script/build` and `script/start`."""

RUN = "agent.scripts"
ANEW = {"anew": True}
"""Payload of the operation: build again, whatever was built already."""

BUILD_SECONDS = 300.0
TIMED_OUT = 124
STOP_GRACE = 5.0

_SUBJECT = "/scripts"


class ScriptState(StrEnum):
    NOT_CONFIGURED = "Not configured"
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True)
class ScriptStatus:
    """What became of a script. `reason` says why it failed or what it waits for; `digest` is the manifest's."""

    state: ScriptState = ScriptState.NOT_CONFIGURED
    reason: str | None = None
    exit_code: int | None = None
    digest: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


def subject(agent_id: str) -> str:
    """The subject of the operation: not the agent itself, whose restart would wait for a build of minutes."""
    return f"{agent_id}{_SUBJECT}"


def agent_of(of_subject: str) -> str:
    return of_subject.removesuffix(_SUBJECT)


def seen(name: str, script: ScriptStatus, processes: Mapping[str, ProcessStatus] | None) -> ScriptStatus:
    """A script as it is now: what was noted, corrected by what the box says. `processes` is None without a box."""
    if processes is None:
        return _waiting(script)
    if name == BUILD or script.state is not ScriptState.RUNNING:
        return script
    process = processes.get(PROCESSES[START])
    if process is None or (process.state == "exited" and process.exit_code is None):
        return replace(script, state=ScriptState.PENDING, reason="The agent's container was started anew")
    if process.state == "running":
        return replace(script, started_at=process.started_at)
    code = process.exit_code
    return replace(
        script,
        state=ScriptState.FAILED,
        reason=f"It ended with code {code}" + (" and is started again" if process.state == "backoff" else ""),
        exit_code=code,
        started_at=process.started_at,
    )


def _waiting(script: ScriptStatus) -> ScriptStatus:
    if script.state in {ScriptState.RUNNING, ScriptState.PENDING}:
        return replace(script, state=ScriptState.PENDING, reason="The agent is not running")
    return script
