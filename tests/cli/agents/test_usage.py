"""`roost usage`: tables by day, model and agent, and all as JSON."""

import json
from datetime import date, timedelta
from typing import Any

import pytest

from roost.core import clock
from tests.cli.terminal import FakeServer

COUNT = {"requests": 2, "promptTokens": 20, "completionTokens": 6}
NONE = dict.fromkeys(COUNT, 0)
REPORT: dict[str, Any] = {
    "from": "2026-01-01",
    "to": "2026-01-02",
    "total": COUNT,
    "days": [{"day": "2026-01-01", **NONE}, {"day": "2026-01-02", **COUNT}],
    "models": [{"model": "openai/gpt-5", **COUNT}],
    "agents": [{"agentId": "a1", **COUNT}, {"agentId": None, **COUNT}, {"agentId": "gone", **COUNT}],
}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    today = clock.utc_now().date()
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers[f"GET /v0/usage?{_period(today, 30)}"] = (200, REPORT)
    empty = {**REPORT, "total": NONE, "days": [], "models": [], "agents": []}
    server.answers[f"GET /v0/agents/a1/usage?{_period(today, 7)}"] = (200, empty)
    return server


def _period(today: date, days: int) -> str:
    return f"from={today - timedelta(days=days - 1)}&to={today}"


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_days_with_usage_and_the_total(ada: FakeServer) -> None:
    head, *rows = _rows(ada.run("usage").stdout)
    assert head == ["DAY", "REQUESTS", "PROMPT", "TOKENS", "COMPLETION", "TOKENS"]
    assert rows == [["2026-01-02", "2", "20", "6"], ["total", "2", "20", "6"]]


def test_models_and_agents(ada: FakeServer) -> None:
    assert _rows(ada.run("usage", "--by", "model").stdout)[1] == ["openai/gpt-5", "2", "20", "6"]
    rows = _rows(ada.run("usage", "--by", "agent").stdout)
    assert [row[0] for row in rows[1:]] == ["Ada", "(no", "gone", "total"]


def test_json_output_is_the_report(ada: FakeServer) -> None:
    assert json.loads(ada.run("usage", "-o", "json").stdout) == REPORT


def test_an_agent_without_usage(ada: FakeServer) -> None:
    assert ada.run("usage", "Ada", "--days", "7").stdout == "No model was used in the last 7 days.\n"
