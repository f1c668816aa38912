"""`roost up`: runs the whole server in this terminal and creates a first agent (decision 0019).

Ctrl-C and a closed terminal stop the server and its agents; SIGTERM does, too, unless the setting `keep_agents_on_stop`
leaves the agents to the next server.
"""

import asyncio
import errno
import json
import shlex
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path

import typer
import uvloop
from sqlalchemy import Connection

from roost import __version__, app
from roost.agents.lifecycle.workflows.model import AgentStartFailed, CreateAgent, LaunchSource
from roost.agents.registry.model import Agent, AgentProfile
from roost.app import Drivers
from roost.cli.client.context_file import find_other_server
from roost.cli.output.output import console, error_console, print_field, print_line
from roost.cli.server.dashboard import open_window
from roost.cli.server.engines import install_version, show_progress
from roost.core import clock, log
from roost.core.machine import interpreter
from roost.core.machine.private_file import write_private_file
from roost.core.problem import Problem
from roost.drivers.runtime.contract import EngineVersion
from roost.http.server.server import (
    StopRequest,
    clear_ambient_capabilities,
    lock_data_folder,
    open_listeners,
    stop_on_signals,
)
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind, Role
from roost.identity.errors import KeyOpensNoSession
from roost.identity.model import DEFAULT_TENANT, Tenant
from roost.settings import Settings

_FIRST_AGENT = "First agent"
_SHOWN_AGENTS = 10
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES})


class DataFolderUnwritable(Problem):
    message = "The data folder cannot be written"


def run_server(settings: Settings, drivers: Drivers, *, first_agent: bool, opens_browser: bool = False) -> None:
    """Run the server until SIGINT, SIGTERM or SIGHUP.

    Raises DataFolderUnwritable when the disk is full or read-only.
    """
    log.configure_logging(settings.log_level or ("warning" if sys.stderr.isatty() else "info"))
    interpreter.shorten_thread_turns()
    clear_ambient_capabilities()  # before any thread starts, because each has its own
    try:
        with lock_data_folder(app.ensure_data_folder(settings)):
            if not any(engine.installed() for engine in drivers.engines):
                install_version(settings, drivers.engines[0], drivers.engines[0].default_version)
            if settings.runtime == "docker":
                _prepare_images(drivers)
            uvloop.run(_serve(settings, drivers, first_agent=first_agent, opens_browser=opens_browser))
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        raise DataFolderUnwritable(
            f"The data folder {settings.data} cannot be written: {error.strerror}. Free space or fix its permissions."
        ) from None


def _prepare_images(drivers: Drivers) -> None:
    """Do with a progress bar what the first start of an agent would have to wait for."""
    newest = [EngineVersion(one.id, one.installed()[0]) for one in drivers.engines if one.installed()]
    with show_progress("Preparing images") as progress:
        for engine in (None, *newest):
            asyncio.run(app.prepare_software(drivers.runtime, engine, progress))


async def _serve(settings: Settings, drivers: Drivers, *, first_agent: bool, opens_browser: bool) -> None:
    listeners = open_listeners(settings.host, settings.port, settings.agent_ports)
    tls_listeners = app.open_tls_sockets(settings)
    port, tls_port = listeners[0].getsockname()[1], tls_listeners.port if tls_listeners else None
    settings = app.settings_for_port(settings, port, tls_port)
    stop = StopRequest()
    stop_on_signals(stop)
    server = app.build_server(settings, drivers, tls_listeners)
    await server.start()
    try:
        tenant, caller = await _ensure_key(server)
        interpreter.freeze_heap()
        serving = asyncio.create_task(server.serve(listeners, stop))
        _print_summary(server)
        await _present_dashboard(server, caller, opens_browser=opens_browser)
        if first_agent and not await server.agents.registry.runtimes.agents.list(tenant.id):
            await _run_until_stopped(_create_first_agent(server, tenant), stop)
        else:
            _print_agents(server, await server.agents.registry.runtimes.agents.list(tenant.id))
        _warn_of_other_server(server)
        if not stop.is_set():
            print_line("\nPress Ctrl-C to stop the server and its agents.\n")
        await serving
    finally:
        keep_agents = stop.signal == signal.SIGTERM and settings.keep_agents_on_stop == "true"
        with suppress(OSError, SystemExit):  # the terminal or the pipe is closed; at a pipe rich exits
            print_line("The agents keep running for the next server." if keep_agents else "Stopping the agents ...")
        await server.stop(keep_agents=keep_agents)


async def _present_dashboard(server: app.RoostServer, caller: Caller, *, opens_browser: bool) -> None:
    """Print a link that signs a browser in once, and open it in one of this desktop."""
    if server.core.settings.runtime == "kubernetes":  # what a pod prints is kept, and read by others
        url = server.core.addresses.dashboard_url
        print_field("  dashboard", f"{url} (`roost dashboard` in a pod of a server makes a link)", 12, "dim")
        return
    try:
        link = (await server.core.identity.sessions.sessions.create_link(caller, Role.OWNER)).url.reveal()
    except KeyOpensNoSession:  # `cli.json` has a key with a limited number of uses
        link = server.core.addresses.dashboard_url
    print_field("  dashboard", f"{link} (works once, for 10 minutes; `roost dashboard` makes another)", 12, "dim")
    if opens_browser and sys.stdout.isatty():
        await asyncio.to_thread(open_window, link)


async def _ensure_key(server: app.RoostServer) -> tuple[Tenant, Caller]:
    """Return the default tenant and the caller with its key, which `cli.json` has for the command line."""

    def issue(connection: Connection) -> tuple[Tenant, str]:
        tenant = tenants.ensure_tenant(connection, DEFAULT_TENANT)
        return tenant, server.core.identity.api_keys.issue(connection, tenant, "command line").reveal()

    path = server.core.settings.data / "cli.json"
    known = await _load_key(server, path)
    tenant, token = known or await server.core.db.write(issue)
    _write_session(path, server.core.settings, server.core.addresses.domain, token)
    return tenant, await server.core.identity.api_keys.verify(token, counts_use=False)


def _write_session(path: Path, settings: Settings, domain: str, token: str) -> None:
    content = {"url": _local_url(settings), "token": token, "domain": domain, "tls": settings.tls}
    write_private_file(path, json.dumps(content))


async def _load_key(server: app.RoostServer, path: Path) -> tuple[Tenant, str] | None:
    """Return the tenant and key of an earlier run, if the key is still valid."""
    try:
        token = json.loads(path.read_text())["token"]  # noqa: ASYNC240 - a few bytes, before the server accepts requests
        caller = await server.core.identity.api_keys.verify(token)
    except (OSError, ValueError, KeyError, TypeError, Problem):
        return None
    return await server.core.db.read(lambda connection: tenants.get_tenant(connection, caller.tenant_id)), token


async def _create_first_agent(server: app.RoostServer, tenant: Tenant) -> None:
    caller = Caller(CallerKind.SERVICE, tenant.id)
    began = clock.monotonic_seconds()
    with console.status("Starting the first agent ..."):
        try:
            request = CreateAgent(AgentProfile(_FIRST_AGENT, emoji="🐣"))
            agent = await server.agents.lifecycle.launch.create(caller, LaunchSource(request))
        except AgentStartFailed as failure:
            print_line(
                f"\nThe first agent did not start: {failure.agent.reason or 'the start timed out.'}", error_console
            )
            print_line(
                "Run `roost doctor` to check this machine, `roost agents logs` to see its output.", error_console
            )
            return
        except Problem as problem:
            print_line(f"\nThe first agent was not created: {problem.message}", error_console)
            return
    print_line(f"\nThe first agent is ready after {clock.monotonic_seconds() - began:.1f} s.")
    _print_agent(server, agent)


async def _run_until_stopped(work: Coroutine[None, None, None], stop: asyncio.Event) -> None:
    """Run the coroutine, and cancel it on Ctrl-C instead of waiting for an agent to start."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        task.result()
    task.cancel()
    await asyncio.wait({task, stopped})


def _print_summary(server: app.RoostServer) -> None:
    settings = server.core.settings
    installed = server.agents.registry.runtimes.list_engines()
    engines = ", ".join(f"{engine.id} {engine.installed()[0]}" for engine in installed)
    database = "SQLite" if server.core.db.is_sqlite else "PostgreSQL"
    models = ", ".join(upstream.url for upstream in settings.upstreams) or "scripted stand-in (docs/guides/models.md)"
    print_field(f"\nRoost {__version__}", f"{server.core.addresses.agents_url}/v0")
    ports = settings.agent_ports
    for name, value in (
        *((("agents", f"at ports {ports[0]}-{ports[-1]} (`roost doctor` says what they lack)"),) if ports else ()),
        ("data", f"{settings.data} ({database})"),
        ("engines", engines),
        ("models", models),
        *_describe_tls(settings),
        ("containers", f"{server.drivers.runtime.name} (`roost doctor` shows the enforced limits)"),
    ):
        print_field(f"  {name}", value, 12, "dim")


def _describe_tls(settings: Settings) -> Sequence[tuple[str, str]]:
    if not settings.tls:
        return ()
    source = f"{settings.tls_certificate}, others from " if settings.tls_certificate else "from "
    return [("TLS", f"Caddy on port {settings.tls_port}, certificates {source}{settings.acme_url}")]


def _print_agents(server: app.RoostServer, agents: Sequence[Agent]) -> None:
    for agent in agents[:_SHOWN_AGENTS]:
        _print_agent(server, agent)
    if len(agents) > _SHOWN_AGENTS:
        command = f"{_program_name()} agents list{_data_flag(server.core.settings)}"
        print_line(f"\n  {len(agents) - _SHOWN_AGENTS} more agents: {command}")


def _print_agent(server: app.RoostServer, agent: Agent) -> None:
    print_line(f"\n  {agent.profile.name} ({agent.engine}, {agent.state})")
    print_line(f"    chat         {_program_name()} chat{_data_flag(server.core.settings)} {agent.id}")
    print_line(f"    address      {server.core.addresses.agent_origin(agent.id)}/")


def _warn_of_other_server(server: app.RoostServer) -> None:
    """Say when commands of this shell reach another server than this one."""
    settings = server.core.settings
    try:
        other = find_other_server(
            _local_url(settings), server.core.addresses.domain, names_folder=bool(_data_flag(settings))
        )
    except typer.Exit:  # the file of contexts is damaged, as the error message says
        return
    if other is not None:
        print_line(f"\n`roost chat` and other commands reach {other[0]}, not this server. To reach it: `{other[1]}`.")


def _local_url(settings: Settings) -> str:
    """Return the URL at which programs of this machine reach the server."""
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "localhost") else settings.host  # noqa: S104 - compared
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _data_flag(settings: Settings) -> str:
    """Return the option that selects this server's data folder, if it is not the default."""
    if settings.data == Path(".roost").resolve():
        return ""
    return f" --data {shlex.quote(str(settings.data))}"


def _program_name() -> str:
    """Return the command that calls this program again."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return f"{Path(sys.executable).name} -m {path.parent.name}"
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return path.name
