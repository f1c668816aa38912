"""Names for the completion of a shell, asked from the server within a second; none when it does not answer.

Agents choose names, too, and the scripts of shells evaluate what a completion returns. So a name with a character that
means something to a shell is not offered; its id is.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Thread
from typing import Any

import typer

from roost.cli.client.context_file import LOCAL, read_contexts, select_context
from roost.cli.client.session import ServerSession, load_session
from roost.cli.output.output import error_console
from roost.core.problem import Problem

_SECONDS = 1.0
_FAILURES = (typer.Exit, Problem, ValueError, LookupError, TypeError, AttributeError)  # no server, or no such answer
_PLAIN = re.compile(r"[\w@.][\w@./+-]*")

Names = Iterable[str | None]


def complete_agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of agents; the id of one whose name is not unique or not plain."""

    def list_names(server: ServerSession) -> Names:
        agents: list[dict[str, str]] = server.call("GET", "/v0/agents", timeout_seconds=_SECONDS)["agents"]
        counted = Counter(agent["name"] for agent in agents)
        for agent in agents:
            is_name = counted[agent["name"]] == 1 and _PLAIN.fullmatch(agent["name"])
            yield agent["name"] if is_name else agent["agentId"]

    return _complete(ctx, incomplete, list_names)


def complete_secrets(ctx: typer.Context, incomplete: str) -> list[str]:
    return _complete(ctx, incomplete, lambda server: _list_field(server, "/v0/secrets", ["secrets"], "name"))


def complete_skills(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return slugs of skills, or the names of those without one."""

    def list_names(server: ServerSession) -> Names:
        skills = server.call("GET", "/v0/skills", timeout_seconds=_SECONDS)["skills"]
        return [skill["slug"] or skill["name"] for skill in skills]

    return _complete(ctx, incomplete, list_names)


def complete_templates(ctx: typer.Context, incomplete: str) -> list[str]:
    path = "/v0/public-templates?limit=100"
    return _complete(ctx, incomplete, lambda server: _list_field(server, path, ["templates"], "slug"))


def complete_gateways(ctx: typer.Context, incomplete: str) -> list[str]:
    path, rows = "/v3/gateways?pageSize=100", ("data", "rows")
    return _complete(ctx, incomplete, lambda server: _list_field(server.storage_session(), path, rows, "domain"))


def complete_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return ids of groups, of the network that `--public` chooses."""
    path = f"/v3/groups/{'public' if ctx.params.get('public') else 'private'}?limit=100"
    rows = ("data", "groups")
    return _complete(ctx, incomplete, lambda server: _list_field(server.storage_session(), path, rows, "id"))


def complete_domains(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the domains of the agent that stands before."""

    def list_names(server: ServerSession) -> Names:
        return _list_field(server, f"{server.agent_path(ctx.params['agent'])}/domains", ["domains"], "domain")

    return _complete(ctx, incomplete, list_names)


def complete_contexts(ctx: typer.Context, incomplete: str) -> list[str]:  # noqa: ARG001 - as the others
    return _answer(incomplete, lambda: [LOCAL, *read_contexts().contexts])


def _list_field(server: ServerSession, path: str, rows: Iterable[str], field: str) -> list[str]:
    """Return a field of each record; `rows` leads to the records in the answer."""
    found: Any = server.call("GET", path, timeout_seconds=_SECONDS)
    for name in rows:
        found = found[name]
    return [row[field] for row in found]


def _complete(ctx: typer.Context, incomplete: str, list_names: Callable[[ServerSession], Names]) -> list[str]:
    options = ctx.find_root().params, ctx.params

    def ask() -> Names:
        select_context(options[0].get("context"))
        return list_names(load_session(options[1].get("data")))

    return _answer(incomplete, ask)


def _answer(incomplete: str, ask: Callable[[], Names]) -> list[str]:
    """Return the plain names that begin so. In a thread, because no timeout covers name resolution and slow bytes."""
    found: list[str] = []

    def run() -> None:
        was_quiet, error_console.quiet = error_console.quiet, True
        with suppress(*_FAILURES):
            found.extend(name for name in ask() if name and name.startswith(incomplete) and _PLAIN.fullmatch(name))
        error_console.quiet = was_quiet

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return list(found)  # a copy, because the thread may still run
