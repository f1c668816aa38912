"""A database that goes away under a running server: few lines in its log, and no traceback."""

import json
import time
from pathlib import Path

import pytest

from tests.contract.test_database_away import allow_connections
from tests.journeys.server_process import until, up

pytestmark = [pytest.mark.postgres, pytest.mark.container]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_an_outage_of_the_database_is_few_lines(tmp_path: Path, postgres_url: str, database_url: str) -> None:
    with up(tmp_path / "data", "--no-first-agent", ROOST_DATABASE_URL=database_url) as server, server.client() as api:
        assert api.get("/v0/agents").status_code == 200
        until(lambda: "Press Ctrl-C" in server.text())  # the start itself needs the database
        began = len(server.text().splitlines())
        allow_connections(postgres_url, database_url, allowed=False)
        try:
            over = time.monotonic() + 4  # several rounds of each task of the server
            while time.monotonic() < over:
                assert api.get("/v0/skills").status_code == 503
        finally:
            allow_connections(postgres_url, database_url, allowed=True)
        until(lambda: api.get("/v0/agents").status_code == 200)
        until(lambda: "outage.ended" in server.text())
        lines = server.text().splitlines()[began:]
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        assert not [line for line in lines if "Traceback" in line]
        told = [entry["event"] for entry in entries if entry["level"] != "info"]
        assert told == ["outage.reported", "outage.ended"]
