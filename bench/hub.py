"""Search among 10,000 published skills over HTTP, on SQLite and PostgreSQL, compared with a minimal ASGI app."""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import cycle
from pathlib import Path

import httpx2 as httpx

from bench.bare_programs import BARE_ASGI, bare_asgi
from bench.row import Row
from bench.timing import time_in_turns
from roost import app, config
from roost.agents.library.hub import store
from roost.agents.library.hub.model import HubOwner, HubSkill, HubVersion
from roost.agents.library.skills.skill_wants import SkillWants
from roost.agents.library.skills.verdict import Verdict, VerdictLevel
from roost.agents.library.skills.verdict.rules import rules_version
from roost.core import clock, ids
from roost.core.db import Connection
from roost.identity import tenants
from tests.journeys.server_process import until, up
from tests.support.databases import run_postgres

_SKILLS, _ROUNDS = 10_000, 60
_WORDS = [f"{first}{second}" for first in ("acorn", "bird", "cloud", "drum", "elm") for second in map(str, range(200))]
_QUERIES = ("drum7 elm3", "acorn", "cloud19", "finds and elm4", "nothing like this", "")
"""A few skills, many, few, all and a few, none, and no words at all."""
_SHORTFALL = "PostgreSQL's time: the same request is within the goal on SQLite."


def run(folder: Path) -> Iterator[Row]:
    with bare_asgi() as hello:
        for name, database in (("SQLite", _sqlite), ("PostgreSQL", _postgresql)):
            with database() as settings, tempfile.TemporaryDirectory(dir=folder) as data:
                yield from _measure(name, Path(data) / "data", settings, hello)


@contextmanager
def _sqlite() -> Iterator[Mapping[str, str]]:
    yield {}


@contextmanager
def _postgresql() -> Iterator[Mapping[str, str]]:
    with run_postgres() as url:
        yield {"ROOST_DATABASE_URL": url}


def _measure(name: str, data: Path, settings: Mapping[str, str], hello: Callable[[], None]) -> Iterator[Row]:
    _fill(data, settings)
    with up(data, "--no-first-agent", **settings) as server, server.client() as client:
        until(lambda: client.get("/v0/hub/@roost/json-tools").status_code == 200)
        for label, path in (("hub search", "/v0/hub"), ("hub search by ClawHub's protocol", "/api/v1/search")):
            search = partial(_search, client, path, cycle(_QUERIES))
            took, bare = time_in_turns(search, hello, rounds=_ROUNDS, warm=len(_QUERIES))
            row = f"{label} among {_SKILLS:,} skills, {name}, p50"
            yield Row(row, took, "ms", BARE_ASGI, bare, "<= 40 x", shortfall=_SHORTFALL)


def _search(client: httpx.Client, path: str, queries: Iterator[str]) -> None:
    client.get(path, params={"q": next(queries), "limit": 20}).raise_for_status()


def _fill(data: Path, environment: Mapping[str, str]) -> None:
    """Publish skills that exist in the database only; a search reads nothing else."""
    settings = config.load_settings({"ROOST_DATA": str(data), **environment})
    db = app.open_database(settings)
    db.run(_publish)
    db.run(lambda connection: connection.exec_driver_sql("ANALYZE"))  # as PostgreSQL does by itself in the background
    db.close()


def _publish(connection: Connection) -> None:
    tenant = tenants.ensure_tenant(connection, "bench").id
    store.add_owner(connection, HubOwner("bench", tenant))
    chance, now, rules = random.Random(7), clock.utc_now(), rules_version()
    for number in range(_SKILLS):
        at = now - timedelta(minutes=number)
        words = chance.sample(_WORDS, 14)
        description = f"Finds and sorts {' '.join(words[:12])}. Use it when a person asks for {words[12]}."
        skill_id, version_id = ids.new_id(), ids.new_id()
        skill = HubSkill(
            id=skill_id,
            tenant_id=tenant,
            owner="bench",
            name=f"{words[0]}-{number}",
            description=description,
            author_name="Bench",
            author_url=None,
            author_logo_url=None,
            category=words[13],
            tags=words[:3],
            featured=False,
            install_count=chance.randrange(1000),
            latest_id=version_id,
            created_at=at,
            updated_at=at,
        )
        version = HubVersion(
            id=version_id,
            hub_skill_id=skill_id,
            tenant_id=tenant,
            version="1.0.0",
            cid=f"bafybench{number}",
            description=description,
            license=None,
            changelog="",
            wants=SkillWants(),
            verdict=Verdict(VerdictLevel.CLEAN, (), rules),
            fingerprint=f"{number:064}",
            files=1,
            size=1000,
            created_at=at,
            body="Do it.\n" * 100,
        )
        store.insert_skill(connection, skill)
        store.insert_version(connection, version)
