"""API shapes of scripts; states that the contract leaves open follow the reference service."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field

from roost.agents.workspace.scripts.model import BUILD, START, ScriptState, ScriptStatus
from roost.web.schemas import ApiSchema, Moment


class ScriptRecord(ApiSchema):
    state: ScriptState = Field(examples=["success"])
    reason: str | None
    exit_code: int | None
    started_at: Moment | None
    finished_at: Moment | None


class ScriptListRecord(ApiSchema):
    build: ScriptRecord
    start: ScriptRecord

    @classmethod
    def from_scripts(cls, scripts: Mapping[str, ScriptStatus]) -> Self:
        return cls(build=ScriptRecord(**vars(scripts[BUILD])), start=ScriptRecord(**vars(scripts[START])))


class LaunchScriptsResponse(ApiSchema):
    success: bool = True
    message: str
