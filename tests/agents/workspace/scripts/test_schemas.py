from datetime import UTC, datetime

from roost.agents.workspace.scripts.model import BUILD, START, ScriptState, ScriptStatus
from roost.agents.workspace.scripts.schemas import ScriptListRecord

AT = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)


def test_both_scripts_are_told_and_no_digest() -> None:
    build = ScriptStatus(ScriptState.FAILED, "It ended with code 2", 2, "digest", AT, AT)
    told = ScriptListRecord.from_scripts({BUILD: build, START: ScriptStatus()}).model_dump(mode="json", by_alias=True)
    assert told == {
        "build": {
            "state": "failed",
            "reason": "It ended with code 2",
            "exitCode": 2,
            "startedAt": "2026-11-21T10:29:47.355000Z",
            "finishedAt": "2026-11-21T10:29:47.355000Z",
        },
        "start": {
            "state": "Not configured",
            "reason": None,
            "exitCode": None,
            "startedAt": None,
            "finishedAt": None,
        },
    }
