"""Shapes of scripts; what the contract leaves open follows the reference service's words for their states."""

from collections.abc import Mapping

from roost.agents.scripts.model import BUILD, START, Script, ScriptState
from roost.web.wire import Moment, Wire


class ScriptRecord(Wire):
    state: ScriptState
    reason: str | None = None
    exit_code: int | None = None
    started_at: Moment | None = None
    finished_at: Moment | None = None


class ScriptRecords(Wire):
    build: ScriptRecord
    start: ScriptRecord


class Launched(Wire):
    success: bool = True
    message: str


def records(scripts: Mapping[str, Script]) -> ScriptRecords:
    return ScriptRecords(build=_record(scripts[BUILD]), start=_record(scripts[START]))


def _record(script: Script) -> ScriptRecord:
    return ScriptRecord(**{name: value for name, value in vars(script).items() if name != "digest"})
