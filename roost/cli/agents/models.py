"""`roost models ...`, and `roost usage`: what agents used of models, by day, model or agent."""

from datetime import UTC, timedelta
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.agents.models.usage.model import DAYS_LIMIT, DEFAULT_DAYS
from roost.agents.setup.secrets.providers import PROVIDERS
from roost.cli.agents.secrets import ValueFile, read_value
from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import (
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    exit_with_unknown,
    print_as_document,
    print_line,
    print_rows,
)
from roost.core import clock

commands = typer.Typer()
_RESTART_TIMEOUT_SECONDS = 300.0
_USAGE_COLUMNS = ("requests", "promptTokens", "completionTokens")


@commands.command("list")
def list_models(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the models that an agent may use, the default first."""
    server = load_session(data)
    found = server.call("GET", f"{server.agent_path(agent)}/models")
    if print_as_document(found, output):
        return
    print_rows(found["models"], ("id", "provider"), output)
    for problem in found.get("problems", ()):
        print_line(f"{problem}.", error_console)


@commands.command("connect")
def connect_provider(
    agent: AgentName,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="Such as openai, anthropic, openrouter.")],
    value_file: ValueFile = None,
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Give an agent the models of a provider: try a key, store it if it works, and restart the agent.

    The key comes from --value-file, standard input or a prompt. A key that does not work changes nothing.
    """
    known = next((one for one in PROVIDERS if one.id == provider and one.models), None)
    if known is None:
        exit_with_unknown("model provider", provider, [one.id for one in PROVIDERS if one.models], "roost models list")
    server = load_session(data)
    agent_id = server.find_agent(agent)["agentId"]
    key = read_value(value_file, "Key")
    secrets = [row for row in server.call("GET", "/v0/secrets")["secrets"] if row["name"] in known.names]
    others = {one["agentId"]: one["name"] for row in secrets for one in row["agents"] if one["agentId"] != agent_id}
    if others:
        confirm_change(f"{', '.join(others.values())} may use the key that this one replaces. Replace it for all?", yes)
    body = {"provider": provider, "key": key, "replaceFor": list(others)}
    with error_console.status("Trying the key ..."):
        path = f"/v0/agents/{agent_id}/model-key"
        used = server.call("PUT", path, body, timeout_seconds=_RESTART_TIMEOUT_SECONDS)
    print_line(
        f"The key works, and is stored as {used['secret']}. {len(used['models'])} models, first {used['models'][0]}."
    )


@commands.command("servers")
def list_servers(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the models of Ollama, LM Studio and llama.cpp that answer on this machine."""
    found = load_session(data).call("GET", "/v0/model-servers")
    if print_as_document(found, output):
        return
    rows = [row for one in found["servers"] for row in _rows(one)]
    print_rows(rows, ("server", "provider", "model", "baseUrl"), output)
    if not found["available"]:
        print_line(
            "Model servers are looked for only for the tenant 'default', on a server that no other machine reaches, "
            "and unless ROOST_MODEL_SERVERS is none. Else connect one by ROOST_MODEL_URL.",
            error_console,
        )
    elif not found["servers"]:
        print_line("None answers. Start one, such as `ollama serve`, on the server's machine.", error_console)


@commands.command("use")
def use_server(
    agent: AgentName,
    model: Annotated[
        str, typer.Argument(metavar="PROVIDER/MODEL", help="As in `roost models servers`: ollama/qwen3:8b.")
    ],
    data: Data = None,
) -> None:
    """Let an agent use a model of a server on this machine; this restarts it."""
    provider, _, name = model.partition("/")
    server = load_session(data)
    path = f"{server.agent_path(agent)}/model-server"
    with error_console.status("Connecting the model ..."):
        used = server.call("PUT", path, {"provider": provider, "model": name}, timeout_seconds=_RESTART_TIMEOUT_SECONDS)
    print_line(f"The agent now uses {used['model']}.")


def _rows(server: dict[str, Any]) -> list[dict[str, str]]:
    shared = {"server": server["label"], "provider": server["provider"], "baseUrl": server["baseUrl"]}
    return [{**shared, "model": model} for model in server["models"] or [""]]


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
    if print_as_document(report, output):
        return
    agents = server.call("GET", "/v0/agents")["agents"] if by is UsageGroup.AGENT else ()
    names = {None: "(no agent)"} | {agent["agentId"]: agent["name"] for agent in agents}
    used = [row for row in report[f"{by}s"] if row["requests"]]
    rows = [{**row, "agent": names.get(row.get("agentId"), row.get("agentId"))} for row in used]
    if not rows:
        print_line(f"No model was used in the last {days} days.")
        return
    print_rows([*rows, {by.value: "total", **report["total"]}], (by, *_USAGE_COLUMNS), output)
