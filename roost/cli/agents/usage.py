"""`roost usage`: what agents used of models, by day, model or agent."""

from datetime import UTC, timedelta
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.agents.models.usage.model import DAYS_LIMIT, DEFAULT_DAYS
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import Output, OutputFormat, print_line, print_record, print_rows
from roost.core import clock

_COLUMNS = ("requests", "promptTokens", "completionTokens")


class UsageGroup(StrEnum):
    DAY = "day"
    MODEL = "model"
    AGENT = "agent"


def print_usage(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="The agent's name or id; all agents without it.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=DAYS_LIMIT, help="The last days, with today (UTC).")] = DEFAULT_DAYS,
    by: Annotated[UsageGroup, typer.Option(help="What to sum by.")] = UsageGroup.DAY,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Print requests to models and their tokens by day, model or agent; as JSON all of it."""
    server = load_session(data)
    today = clock.utc_now().astimezone(UTC).date()
    query = urlencode({"from": today - timedelta(days=days - 1), "to": today})
    base = server.agent_path(agent) if agent else "/v0"
    report = server.call("GET", f"{base}/usage?{query}")
    if output is not OutputFormat.TABLE:
        print_record(report, output)
        return
    names = _agent_names(server.call("GET", "/v0/agents")["agents"]) if by is UsageGroup.AGENT else {}
    used = [row for row in report[f"{by}s"] if row["requests"]]
    rows = [{**row, "agent": names.get(row.get("agentId"), row.get("agentId"))} for row in used]
    if not rows:
        print_line(f"No model was used in the last {days} days.")
        return
    print_rows([*rows, {by.value: "total", **report["total"]}], (by, *_COLUMNS), output)


def _agent_names(agents: list[dict[str, Any]]) -> dict[str | None, str]:
    return {None: "(no agent)"} | {agent["agentId"]: agent["name"] for agent in agents}
