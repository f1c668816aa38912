from dataclasses import replace
from typing import Any

import pytest

from roost.web import access_log
from roost.web.access_log import AccessRecord

PASSED = AccessRecord("GET", "/v0/agents/{agentId}", 200, 0.0123, 5, 7, "r", "a1")


def line(monkeypatch: pytest.MonkeyPatch, record: AccessRecord) -> dict[str, Any]:
    """What is logged of a request."""
    lines: list[dict[str, Any]] = []

    class Log:
        def info(self, event: str, **fields: Any) -> None:
            lines.append({"event": event, **fields})

    monkeypatch.setattr(access_log, "_log", Log())
    access_log.write_access_log(record)
    (only,) = lines
    return only


def test_a_line_tells_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert line(monkeypatch, PASSED) == {
        "event": "request.finished",
        "method": "GET",
        "path": "/v0/agents/{agentId}",
        "status": 200,
        "ms": 12.3,
        "received": 5,
        "sent": 7,
        "request_id": "r",
        "agent_id": "a1",
    }


def test_a_path_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(line(monkeypatch, replace(PASSED, path="/" + "x" * 10_000))["path"]) == 256
