"""`roost hosts`: straight on the database."""

import asyncio
import json
from pathlib import Path

from roost import app, config
from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.agents.lifecycle.hosts.service import HostService
from tests.cli.terminal import run


def register(folder: Path) -> None:
    """Register a server that has stopped."""
    db = app.open_database(config.load_settings({"ROOST_DATA": str(folder)}))

    async def start_and_stop() -> None:
        server = HostService(db, HostIdentity("h1", "one.example", "/srv/data", "s"), lambda: None)
        await server.start()
        await server.stop()

    asyncio.run(start_and_stop())
    db.close()


def test_servers_are_listed_and_removed(tmp_path: Path) -> None:
    register(tmp_path)
    (row,) = json.loads(run("hosts", "list", "--data", str(tmp_path), "-o", "json").stdout)
    assert (row["id"], row["name"], row["folder"], row["running"]) == ("h1", "one.example", "/srv/data", False)
    remove = ("hosts", "remove", "h1", "--data", str(tmp_path))
    assert run(*remove, input="n\n").exit_code != 0
    assert run(*remove, "--yes").stdout == "Removed, with 0 agents.\n"
    again = run(*remove, "--yes")
    assert (again.exit_code, "no such host" in str(again.exception or again.stderr)) == (1, True)
