"""Reads and writes of records over HTTP (a list of 1,000 agents, a new secret), compared with a minimal ASGI app."""

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx2 as httpx

from bench.bare_programs import BARE_ASGI, bare_asgi
from bench.row import Row
from bench.timing import median_ms, take_turns, time_in_turns
from roost import app, config
from roost.agents.registry.model import AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.app.data_folder import load_host_identity
from roost.core.db import Connection
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.tenants import DEFAULT_TENANT
from roost.keyring import load_sealer
from tests.journeys.server_process import until, up

_AGENTS = 1_000
_LISTS = 20
_SECRETS = 60
_LIST = """
import json, sqlite3, sys, uvicorn
db = sqlite3.connect(sys.argv[2])
db.row_factory = lambda cursor, row: dict(zip((column for column, *_ in cursor.description), row))
async def app(scope, receive, send):
    body = json.dumps(db.execute("SELECT * FROM agents").fetchall(), default=bytes.hex).encode()
    await answer(send, 200, body)
"""
_SHORTFALL = "A program that only reads the rows and writes them as JSON takes what the last reference says."
_UNTRIED = "Never started"


def run(folder: Path) -> Iterator[Row]:
    fill_agents(folder / "data")
    with up(folder / "data", "--no-first-agent") as server, server.client() as client, bare_asgi() as hello:
        until(lambda: have_all_failed(server.agents()), every=0.5)
        with bare_asgi(_LIST, str(folder / "data/roost.db")) as minimal:
            list_all = partial(_list_all, client)
            lists, bare, least = time_in_turns(list_all, hello, minimal, rounds=_LISTS, warm=5)
        name, others = f"list of {_AGENTS:,} agents over HTTP, p50", {"the rows read and written as JSON": least}
        yield Row(name, lists, "ms", BARE_ASGI, bare, "<= 9 ms", others, _SHORTFALL)
        created, bare = take_turns(lambda: _create_secrets(client), lambda: median_ms(hello, _SECRETS))
        yield Row("create a secret over HTTP, p50", created, "ms", BARE_ASGI, bare, "<= 20 x")


def _list_all(client: httpx.Client) -> None:
    client.get("/v0/agents").raise_for_status()


def have_all_failed(agents: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the server has tried to start every agent, so that its queue is empty."""
    return all(agent["status"] == AgentState.FAILED and agent["statusReason"] != _UNTRIED for agent in agents)


def fill_agents(data: Path) -> None:
    """Add agents that exist in the database only; a list reads nothing else."""
    settings = config.load_settings({"ROOST_DATA": str(data)})
    db, host = app.open_database(settings), load_host_identity(settings.data).id
    seal = load_sealer(settings, db)
    agents, gateways = AgentRepository(db, seal, dict.fromkeys(Plan, _AGENTS), host), GatewayTokens(db, seal)

    def add(connection: Connection) -> None:
        tenant = tenants.ensure_tenant(connection, DEFAULT_TENANT)
        for number in range(_AGENTS):
            profile = AgentProfile(f"agent {number}", "An agent of a list.")
            agent = agents.create(connection, tenant.id, profile, "none", "1.0.0")  # no such engine: nothing starts
            gateways.mint(connection, agent.id, tenant.id)
            agents.set_state(connection, agent.id, AgentState.FAILED, _UNTRIED)

    db.run(add)
    db.close()


def _create_secrets(client: httpx.Client) -> float:
    """Return the milliseconds to create a secret. Each is deleted, untimed, because a tenant has a limit of secrets."""
    times: list[float] = []
    for number in range(_SECRETS):
        body = {"name": f"BENCH_{number}", "value": "v" * 64}
        began = time.perf_counter()
        made = client.post("/v0/secrets", json=body)
        times.append((time.perf_counter() - began) * 1000)
        client.delete(f"/v0/secrets/{made.raise_for_status().json()['secret']['id']}").raise_for_status()
    return median(times)
