"""`roost up`: the whole server in this terminal, with a first agent to talk to. Ctrl-C stops it and its agents."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Coroutine
from pathlib import Path

import uvloop
from sqlalchemy import Connection

from roost import __version__, app
from roost.agents.lifecycle.errors import AgentStartFailed
from roost.agents.lifecycle.model import CreateAgent
from roost.agents.registry.model import Agent, AgentProfile
from roost.app import Drivers
from roost.cli.engines import install_one
from roost.cli.output import errors, say, say_field, screen
from roost.config import Settings
from roost.core import clock, log
from roost.core.problem import Problem
from roost.hosts.server import listen, only_one, stop_on_signals
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind
from roost.identity.model import DEFAULT_TENANT, Tenant

_FIRST_AGENT = "First agent"


def serve(settings: Settings, outside: Drivers, *, first_agent: bool) -> None:
    """Run until a signal comes."""
    log.configure_logging(settings.log_level or ("warning" if sys.stderr.isatty() else "info"))
    with only_one(app.data_folder(settings)):
        if not any(engine.installed() for engine in outside.engines):
            install_one(settings, outside.engines[0], outside.engines[0].default_version)
        uvloop.run(_serve(settings, outside, first_agent=first_agent))


async def _serve(settings: Settings, outside: Drivers, *, first_agent: bool) -> None:
    listener = listen(settings.host, settings.port)
    settings = app.at_port(settings, listener.getsockname()[1])
    stop = asyncio.Event()
    stop_on_signals(stop)
    server = app.RoostServer(settings, outside)
    await server.start()
    try:
        tenant = await _leave_key(server)
        serving = asyncio.create_task(server.http.run_on(listener, stop))
        _greet(server)
        if first_agent and not await server.roster.list(tenant.id):
            await _or_stopped(_first_agent(server, tenant), stop)
        else:
            for agent in await server.roster.list(tenant.id):
                _say_agent(server, agent)
        if not stop.is_set():
            say("\nCtrl-C stops the server and its agents.\n")
        await serving
    finally:
        say("Stopping the agents ...")
        await server.stop()


async def _leave_key(server: app.RoostServer) -> Tenant:
    """The default tenant, and a key of it for the command line on this machine."""

    def issue(connection: Connection) -> tuple[Tenant, str]:
        tenant = tenants.ensure_tenant(connection, DEFAULT_TENANT)
        return tenant, server.keys.issue(connection, tenant, "command line").reveal()

    path = server.settings.data / "cli.json"
    known = await _known_key(server, path)
    tenant, token = known or await server.db.write(issue)
    _write_session(path, server.settings, token)
    return tenant


def _write_session(path: Path, settings: Settings, token: str) -> None:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "localhost") else settings.host  # noqa: S104 - compared
    shown = f"[{host}]" if ":" in host else host
    content = {"url": f"http://{shown}:{settings.port}", "token": token, "domain": settings.domain}
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    fresh.rename(path)


async def _known_key(server: app.RoostServer, path: Path) -> tuple[Tenant, str] | None:
    """The key that an earlier run left, if it is still good."""
    try:
        token = json.loads(path.read_text())["token"]  # noqa: ASYNC240 - a few bytes, before anybody is served
        caller = await server.keys.verify(token)
    except (OSError, ValueError, KeyError, TypeError, Problem):
        return None
    return await server.db.read(lambda connection: tenants.get_tenant(connection, caller.tenant_id)), token


async def _first_agent(server: app.RoostServer, tenant: Tenant) -> None:
    caller = Caller(CallerKind.SERVICE, tenant.id)
    began = clock.monotonic_seconds()
    with screen.status("Starting the first agent ..."):
        try:
            agent = await server.agents.launch.create(caller, CreateAgent(AgentProfile(_FIRST_AGENT, emoji="🐣")))
        except AgentStartFailed as failure:
            say(f"\nThe first agent did not start: {failure.agent.reason or 'it took too long.'}", errors)
            say("`roost doctor` checks this machine; `roost agents logs` shows what the agent wrote.", errors)
            return
        except Problem as problem:
            say(f"\nThe first agent was not created: {problem.message}", errors)
            return
    say(f"\nThe first agent is ready after {clock.monotonic_seconds() - began:.1f} s.")
    _say_agent(server, agent)


async def _or_stopped(work: Coroutine[None, None, None], stop: asyncio.Event) -> None:
    """Ctrl-C does not wait for an agent that is starting."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        task.result()
    task.cancel()
    await asyncio.wait({task, stopped})


def _greet(server: app.RoostServer) -> None:
    settings = server.settings
    engines = ", ".join(f"{engine.id} {engine.installed()[0]}" for engine in server.reach.list_engines())
    database = "SQLite" if server.db.is_sqlite else "PostgreSQL"
    models = (
        ", ".join(upstream.url for upstream in settings.upstreams) or "scripted, a stand-in (docs/guides/models.md)"
    )
    say_field(f"\nRoost {__version__}", f"{server.addresses.agents_url}/v0")
    for name, value in (
        ("data", f"{settings.data} ({database})"),
        ("engines", engines),
        ("models", models),
        ("containers", f"{server.runtime.name} (`roost doctor` says what is enforced)"),
    ):
        say_field(f"  {name}", value, 12, "dim")


def _say_agent(server: app.RoostServer, agent: Agent) -> None:
    say(f"\n  {agent.profile.name} ({agent.engine}, {agent.state})")
    say(f"    talk to it   {_program()} chat{_data_flag(server.settings)} {agent.id}")
    say(f"    its address  {server.addresses.agent_origin(agent.id)}/")


def _data_flag(settings: Settings) -> str:
    """What the command line needs to find this server from here."""
    if settings.data == Path(".roost").resolve():
        return ""
    return f" --data {shlex.quote(str(settings.data))}"


def _program() -> str:
    """How this program was called, as a person would type it again."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return f"{Path(sys.executable).name} -m {path.parent.name}"
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return path.name
