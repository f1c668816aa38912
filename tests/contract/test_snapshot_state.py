"""The state of an agent in its snapshots: saved with the workspace, restored when asked, and never published."""

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import sqlalchemy as sa

from roost import config
from roost.agents.workspace.snapshots.model import SnapshotTrigger, content_scope, state_scope
from roost.drivers.engine.hermes.driver import Hermes
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.unixfs.cid import Cid
from tests.support.server import RunningServer, running

FAKE = "/home/agent/.roost/fake"
DATABASE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
for table in ("left_side", "right_side", "device_keys"):
    db.execute(f"CREATE TABLE IF NOT EXISTS {table} (value)")
db.execute("INSERT INTO device_keys VALUES ('a private key')")
def add(value):
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO left_side VALUES (?)", (value,))
    db.execute("INSERT INTO right_side VALUES (?)", (value,))
    db.execute("COMMIT")
"""
ADD = "add(sys.argv[2])"
ADD_ALL_THE_TIME = "\nwhile True:\n    add('x' * 3000)"


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    owner = server.client(server.key())
    created = (await owner.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield created
    await owner.delete(f"/v0/agents/{created['agentId']}")


async def shell(client: httpx.AsyncClient, command: str) -> str:
    result = (await client.post("/v0/console/exec", json={"command": command})).json()
    assert result["exitCode"] == 0, result
    return result["stdout"]


async def add_row(client: httpx.AsyncClient, value: str) -> None:
    await shell(
        client, f"cat > add.py <<'END'\n{DATABASE}{ADD}\nEND\npython3 add.py {FAKE}/memory.db {value}; rm add.py"
    )


async def list_rows(client: httpx.AsyncClient) -> list[str]:
    query = "import sqlite3, sys; print([v for v, in sqlite3.connect(sys.argv[1]).execute('SELECT * FROM left_side')])"
    return json.loads((await shell(client, f'python3 -c "{query}" {FAKE}/memory.db')).replace("'", '"'))


async def sync(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.post("/v0/snapshots/sync")
    assert answer.status_code == 200, answer.text
    return (await client.get("/v0/snapshots")).json()["snapshots"][0]


async def reset(client: httpx.AsyncClient, snapshot: dict[str, Any], *, state: bool) -> None:
    body = {"snapshotCid": snapshot["snapshotCid"], "snapshotId": snapshot["snapshotId"], "state": state}
    answer = await client.post("/v0/snapshots/reset", json=body)
    assert answer.status_code == 200, answer.text


async def find_state(server: RunningServer, agent: dict[str, Any]) -> tuple[Cid, Sequence[str]]:
    query = sa.text("SELECT state_cid, state_packs FROM snapshots WHERE agent_id = :id ORDER BY created_at DESC")
    values = {"id": agent["agentId"]}
    cid, packs = await server.roost.core.db.read(lambda connection: connection.execute(query, values).first()) or (
        "",
        "",
    )
    return Cid.parse(cid), json.loads(packs)


async def read_stored(server: RunningServer, agent: dict[str, Any], path: str) -> bytes:
    """Read a file of the newest state."""
    scope, reader = state_scope(agent["userId"]), server.roost.storage.content.reader
    root, _ = await find_state(server, agent)
    found = (await reader.resolve(scope, root, path.split("/")))[-1]
    return b"".join([piece async for piece in reader.stream_file(scope, found)])


async def test_the_state_comes_back_when_asked(server: RunningServer, agent: dict[str, Any], tmp_path: Path) -> None:
    client = server.agent_client(agent)
    await shell(client, f"echo one > file; mkdir {FAKE}/notes; echo one > {FAKE}/notes/a; echo d1 > {FAKE}/devices.bak")
    await add_row(client, "one")
    first = await sync(client)
    assert (first["hasState"], first["skipped"]) == (True, [])
    await shell(
        client, f"echo two > file; echo two > {FAKE}/notes/a; echo new > {FAKE}/notes/b; echo d2 > {FAKE}/devices.bak"
    )
    await add_row(client, "two")
    await reset(client, first, state=False)
    assert await shell(client, f"cat file; cat {FAKE}/notes/*") == "one\ntwo\nnew\n"
    await reset(client, first, state=True)
    assert await shell(client, f"cat file; cat {FAKE}/notes/*; cat {FAKE}/devices.bak") == "one\none\nd2\n"
    assert await list_rows(client) == ["one"]
    assert (await client.get("/v1/models")).status_code == 200  # the gateway answers again
    copy = tmp_path / "copy.db"
    copy.write_bytes(stored := await read_stored(server, agent, ".roost/fake/memory.db"))
    assert b"a private key" not in stored
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM device_keys").fetchone() == (0,)
    token = json.loads(await shell(client, f"cat {FAKE}/settings.json"))["token"].encode()
    assert token not in await read_stored(server, agent, ".roost/fake/settings.json")


async def test_a_database_that_changes_all_the_time_is_whole(
    server: RunningServer, agent: dict[str, Any], tmp_path: Path
) -> None:
    client = server.agent_client(agent)
    await add_row(client, "first")
    await shell(
        client,
        f"cat > w.py <<'END'\n{DATABASE}{ADD_ALL_THE_TIME}\nEND\n"
        f"setsid python3 w.py {FAKE}/memory.db >/dev/null 2>&1 &",
    )
    counts = set[int]()
    for _ in range(5):
        assert (await sync(client))["skipped"] == []
        copy = tmp_path / "copy.db"
        copy.write_bytes(await read_stored(server, agent, ".roost/fake/memory.db"))
        with closing(sqlite3.connect(copy)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            left, right = (db.execute(f"SELECT count(*) FROM {side}_side").fetchone()[0] for side in ("left", "right"))
        assert left == right
        counts.add(left)
    assert len(counts) > 1
    assert await shell(client, "ls /home/agent/.roost") == "fake\nlogs\n"


async def test_a_change_of_the_state_alone(server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.agent_client(agent)
    first = await sync(client)
    assert (await sync(client))["snapshotId"] == first["snapshotId"]
    await add_row(client, "one")
    for trigger in (SnapshotTrigger.CHANGE, SnapshotTrigger.GIT):
        _, unchanged = await server.roost.agents.lifecycle.workspace.snapshots.sync(agent["agentId"], trigger)
        assert unchanged.id == first["snapshotId"]
    second = await sync(client)
    assert (second["snapshotCid"], second["commitSha"]) == (first["snapshotCid"], first["commitSha"])
    assert second["changeSummary"] == "Only the state changed"
    await reset(client, first, state=True)
    assert "memory.db" not in await shell(client, f"ls {FAKE}")
    await reset(client, second, state=True)
    assert await list_rows(client) == ["one"]


async def test_a_fork_has_the_state(server: RunningServer, agent: dict[str, Any]) -> None:
    client, owner = server.agent_client(agent), server.client(server.key())
    await add_row(client, "remembered")
    await shell(client, f'echo \'{{"pending": [], "paired": []}}\' > {FAKE}/devices.json')
    taken = await sync(client)
    answer = await owner.post("/v0/agents", json={"name": "fork", "snapshotCid": taken["snapshotCid"]})
    assert answer.status_code == 201, answer.text
    created = answer.json()["agent"]
    fork = server.agent_client(created)
    assert await list_rows(fork) == ["remembered"]
    assert "devices.json" not in await shell(fork, f"ls {FAKE}")
    tokens = [json.loads(await shell(one, f"cat {FAKE}/settings.json"))["token"] for one in (client, fork)]
    assert tokens[0] != tokens[1]
    await owner.delete(f"/v0/agents/{created['agentId']}")


async def test_state_leaves_out_secrets_logs_and_broken_databases(server: RunningServer, agent: dict[str, Any]) -> None:
    client, owner = server.agent_client(agent), server.client(server.key())
    value = "a value that nobody may see"
    secret = (await owner.post("/v0/secrets", json={"name": "STATE_TOKEN", "value": value})).json()["secret"]
    await owner.post(f"/v0/agents/{agent['agentId']}/secrets", json={"secretIds": [secret["id"]]})
    await shell(
        client,
        f"cd {FAKE}; echo '{value}' > leak; mkfifo pipe; echo k > oauth.json; echo k > .env; mkdir logs; echo > logs/l;"
        "head -c 20 /dev/urandom > broken.db; echo 'SQLite format 3' | tr '\\n' '\\0' > torn.db",
    )
    taken = await sync(client)
    assert {(one["path"], one["reason"], one["secret"]) for one in taken["skipped"]} == {
        ("~/.roost/fake/leak", "secret", "STATE_TOKEN"),
        ("~/.roost/fake/pipe", "special", None),
        ("~/.roost/fake/torn.db", "unreadable", None),
    }
    root, _ = await find_state(server, agent)
    reader, scope = server.roost.storage.content.reader, state_scope(agent["userId"])
    folder = (await reader.resolve(scope, root, [".roost", "fake"]))[-1]
    names = {str(link.name) async for link in reader.list_entries(scope, folder)}
    assert not names & {"oauth.json", ".env", "logs", "gateway.py", "leak"}
    assert any("broken.db" in name for name in names)


async def test_no_address_serves_the_state(server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.agent_client(agent)
    await add_row(client, "one")
    await shell(client, "echo note > note")
    taken = await sync(client)
    root, packs = await find_state(server, agent)
    reader = server.roost.storage.content.reader
    scopes = (content_scope(agent["userId"]), ContentScope(ContentNetwork.PUBLIC), state_scope("another tenant"))
    for scope in scopes:
        with pytest.raises(ContentNotFound):
            await reader.find_block(scope, root)
    assert (await reader.find_block(state_scope(agent["userId"]), root)).pack_id in packs
    query = sa.text("SELECT count(*) FROM holds WHERE pack_id = :pack")
    counts = [
        await server.roost.core.db.read(lambda c, pack=pack: c.execute(query, {"pack": pack}).scalar_one())
        for pack in packs
    ]
    assert set(counts) == {1}
    owner, api = server.client(server.key()), server.client(server.key(), "api.localhost")
    rows = (await api.get("/v3/gateways")).json()["data"]["rows"]
    host = f"{rows[0]['domain']}.gateways.localhost"
    signed: list[str] = []
    for path in (f"{taken['snapshotCid']}/note", f"{root}/.roost/fake/memory.db"):
        link = {"url": f"http://{host}:{server.port}/files/{path}", "expires": 60, "date": int(time.time())}
        answer = await api.post("/v3/files/private/download_link", json={**link, "method": "GET"})
        signed.append(answer.json()["data"].partition(f":{server.port}")[2])
    gateway = server.client(None, host)
    assert (await gateway.get(signed[0])).text == "note\n"  # of the workspace
    for path in (f"/ipfs/{root}", f"/ipfs/{root}?format=car", f"/ipfs/{root}?format=raw", signed[1]):
        assert (await gateway.get(path)).status_code == 404, path
    for network in ("private", "public"):
        assert (await api.get(f"/v3/files/{network}", params={"cid": str(root)})).json()["data"]["files"] == []
    await owner.delete(f"/v0/agents/{agent['agentId']}")
    with pytest.raises(ContentNotFound):
        await reader.find_block(state_scope(agent["userId"]), root)


async def test_a_fork_of_a_real_engine_continues_the_conversation(tmp_path: Path) -> None:
    engine = Hermes(config.load_settings().engines)
    async with running(tmp_path / "data", engines=[engine]) as server:
        owner = server.client(server.key())
        origin = (await owner.post("/v0/agents", json={"name": "origin"}, timeout=90)).json()["agent"]
        client = server.agent_client(origin)
        chat = {"model": "hermes-agent", "messages": [{"role": "user", "content": "remember the quagga"}]}
        assert (await client.post("/v1/chat/completions", json=chat)).status_code == 200
        task = {"name": "hourly", "schedule": "every 1h", "payload": "say hi"}
        assert (await client.post(f"/v0/agents/{origin['agentId']}/tasks", json=task)).status_code < 300
        taken = await sync(client)
        assert taken["skipped"] == []
        body = {"name": "fork", "snapshotCid": taken["snapshotCid"]}
        fork = server.agent_client((await owner.post("/v0/agents", json=body, timeout=90)).json()["agent"])
        assert [one["preview"] for one in (await fork.get("/api/sessions")).json()["data"]] == ["remember the quagga"]
        assert [one["name"] for one in (await fork.get("/v0/tasks")).json()["tasks"]] == ["hourly"]
        assert (await fork.post("/v1/chat/completions", json=chat)).status_code == 200
