"""How an agent's scripts are told, by themselves and wherever the agent is described."""

from collections.abc import Mapping
from typing import Self

from roost.agents.scripts.model import BUILD, START, Script, ScriptState
from roost.web.wire import Moment, Wire


class ScriptRecord(Wire):
    state: ScriptState
    reason: str | None
    exit_code: int | None
    started_at: Moment | None
    finished_at: Moment | None


class ScriptRecords(Wire):
    build: ScriptRecord
    start: ScriptRecord

    @classmethod
    def of(cls, scripts: Mapping[str, Script]) -> Self:
        return cls(build=_record(scripts[BUILD]), start=_record(scripts[START]))


def _record(script: Script) -> ScriptRecord:
    return ScriptRecord(**{name: value for name, value in vars(script).items() if name != "digest"})
