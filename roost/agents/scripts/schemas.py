"""Shapes of scripts; what the contract leaves open follows the reference service's words for their states."""

from collections.abc import Mapping
from typing import Self

from roost.agents.scripts.model import BUILD, START, ScriptState, ScriptStatus
from roost.web.schemas import ApiSchema, Moment


class ScriptRecord(ApiSchema):
    state: ScriptState
    reason: str | None
    exit_code: int | None
    started_at: Moment | None
    finished_at: Moment | None


class ScriptListRecord(ApiSchema):
    build: ScriptRecord
    start: ScriptRecord

    @classmethod
    def of(cls, scripts: Mapping[str, ScriptStatus]) -> Self:
        return cls(build=_record(scripts[BUILD]), start=_record(scripts[START]))


def _record(script: ScriptStatus) -> ScriptRecord:
    return ScriptRecord(**{name: value for name, value in vars(script).items() if name != "digest"})


class LaunchScriptsResponse(ApiSchema):
    success: bool = True
    message: str
