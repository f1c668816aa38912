"""An agent leaves as one file and comes back on another server, without the value of any secret."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.lifecycle.archives import importer
from roost.agents.workspace.snapshots import store
from roost.agents.workspace.snapshots.model import content_scope, state_scope
from roost.identity.caller import Plan
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.tree_walk import walk_tree
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_PB, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.importer import build_file, build_link
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.contract.test_snapshots import ALL, error, shell, sync
from tests.drivers.chat_platform.stand_in import TELEGRAM_BOT
from tests.storage.cars import blocks_of, encode_car
from tests.support.server import RunningServer, running

VALUE = "a value that nobody may see"
TASK = {"name": "Report", "schedule": "0 8 * * 1-5", "payload": "Summarise the new issues", "enabled": False}
TELEGRAM = {"botToken": TELEGRAM_BOT, "dmPolicy": "pairing", "allowFrom": ["4711"]}
FILES = """set -e
    mkdir -p empty deep/a/b 'with space'; echo one > file; : > deep/a/b/nothing
    echo '#!/bin/sh' > tool; chmod 755 tool; mkdir -m 700 private; echo '{"scripts": {}}' > manifest.json
    ln -s file link; ln -s /etc/passwd away; ln -s missing broken
    touch "$(printf 'bytes \\377')" "$(printf 'new\\nline')" -- '-dash' 'Umlaut ü'
    head -c 3000000 /dev/urandom > large; cp large copy"""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data", ROOST_TELEGRAM_API="http://127.0.0.1:9") as server:
        yield server


@pytest.fixture(scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("target") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def ada(server: RunningServer) -> dict[str, Any]:
    """Return an agent with files, a secret, a task and a channel."""
    owner = server.client(server.key())
    secret = (await owner.post("/v0/secrets", json={"name": "TOKEN", "value": VALUE})).json()["secret"]
    body = {
        "name": "Ada/B",
        "emoji": "🦉",
        "model": "scripted",
        "secretIds": [secret["id"]],
        "channels": {"telegram": TELEGRAM},
    }
    made = await owner.post("/v0/agents", json=body)
    assert made.status_code == 201, made.text
    agent = made.json()["agent"]
    client = server.agent_client(agent)
    await shell(client, FILES + f"; echo {VALUE!r} > leak")
    assert (await client.post("/v0/tasks", json=TASK)).status_code == 201
    return agent


async def export(server: RunningServer, agent: dict[str, Any], **query: str) -> httpx.Response:
    return await server.client(server.key()).get(f"/v0/agents/{agent['agentId']}/export", params=query)


async def send(server: RunningServer, data: bytes, **query: str) -> httpx.Response:
    return await server.client(server.key()).post("/v0/agents/import", content=data, params=query)


async def test_an_agent_moves_to_another_server(
    server: RunningServer, target: RunningServer, ada: dict[str, Any]
) -> None:
    exported = await export(server, ada)
    assert exported.status_code == 200, exported.text
    assert exported.headers["content-type"] == "application/vnd.ipld.car; version=1"
    assert exported.headers["content-disposition"] == 'attachment; filename="Ada-B.car"'
    assert (await export(server, ada)).content == exported.content
    for private in (VALUE, TELEGRAM_BOT, ada["gatewayToken"]):
        assert private.encode() not in exported.content
    made = await send(target, exported.content)
    assert made.status_code == 201, made.text
    answer = made.json()
    assert (answer["missingSecrets"], answer["skippedTasks"]) == (["TOKEN"], [])
    assert answer["missingChannels"] == {"telegram": {"enabled": True} | dict(list(TELEGRAM.items())[1:])}
    agent = answer["agent"]
    assert (agent["name"], agent["emoji"], agent["status"]) == ("Ada/B", "🦉", "running")
    assert agent["model"] == "scripted"
    client, origin = target.agent_client(agent), server.agent_client(ada)
    await shell(origin, "rm leak")
    assert await shell(client, ALL) == await shell(origin, ALL)
    assert (await sync(client))["snapshotCid"] == (await sync(origin))["snapshotCid"]
    tasks = (await client.get("/v0/tasks")).json()["tasks"]
    assert [(task["name"], task["enabled"], task["schedule"]["expr"]) for task in tasks] == [
        ("Report", False, "0 8 * * 1-5")
    ]
    first = (await client.get("/v0/snapshots")).json()["snapshots"][-1]
    assert (first["trigger"], first["files"]) == ("import", 13)
    again = await send(target, (await export(target, agent)).content, name="Other")
    assert again.json()["agent"]["name"] == "Other"


async def test_an_older_snapshot_without_the_secrets_of_today(server: RunningServer) -> None:
    owner = server.client(server.key())
    agent = (await owner.post("/v0/agents", json={"name": "b", "description": "It is in the text"})).json()["agent"]
    client = server.agent_client(agent)
    await shell(client, "echo 'key=of the older state' > deep; echo one > file")
    old = (await sync(client))["snapshotCid"]
    await shell(client, "echo two > file")
    await sync(client)
    made = await send(server, (await export(server, agent, snapshotCid=old)).content, name="c")
    fork = server.agent_client(made.json()["agent"])
    assert await shell(fork, "cat file") == "one\n"
    text = "The agent's description or a task"
    for name, value, place in (("OLD", "of the older state", "deep"), ("TEXT", "is in the text", text)):
        secret = await owner.post("/v0/secrets", json={"name": name, "value": value})
        await owner.post(f"/v0/agents/{agent['agentId']}/secrets", json={"secretIds": [secret.json()["secret"]["id"]]})
        told = f"{place} holds the value of the secret {name}"
        assert error(await export(server, agent, snapshotCid=old)) == (409, told)
    assert error(await export(server, agent)) == (409, told)
    token = {"description": agent["gatewayToken"]}
    assert (await client.patch("/v0/platform/metadata", json=token)).status_code == 200
    told = f"{text} holds the value of the secret gateway token"
    assert error(await export(server, agent)) == (409, told)
    for cid, expected in (("x", (400, "Invalid snapshot CID")), (str(EMPTY.cid), (404, "Snapshot not found"))):
        assert error(await export(server, agent, snapshotCid=cid)) == expected


async def test_only_the_owner_exports(server: RunningServer, ada: dict[str, Any]) -> None:
    path = f"/v0/agents/{ada['agentId']}/export"
    assert (await server.agent_client(ada).get(path)).status_code == 401
    assert (await server.client(server.key("other")).get(path)).status_code == 401
    assert (await server.agent_client(ada).post("/v0/agents/import", content=b"x")).status_code in {401, 404}


def link(blocks: dict[Cid, bytes]) -> Cid:
    blocks[EMPTY.cid] = EMPTY.nodes[0].data
    return EMPTY.cid


def folder(blocks: dict[Cid, bytes], *entries: tuple[str, Cid]) -> Cid:
    """Add a folder with any names."""
    data = dagpb.encode_node([PBLink(cid, name, 0) for name, cid in entries], UnixfsData(UnixfsKind.DIRECTORY))
    cid = Cid.for_block(DAG_PB, data, 1)
    blocks[cid] = data
    return cid


def archive(manifest: Any = None, workspace: Any = None, **more: Any) -> bytes:
    """Build an archive; `workspace` returns its CID and adds its blocks."""
    blocks: dict[Cid, bytes] = {}
    text = manifest if isinstance(manifest, bytes) else json.dumps(MANIFEST | (manifest or {})).encode()
    described, found = blocks_of(UNIXFS_V1_2025, text)
    blocks.update(found)
    root = (workspace or folder)(blocks)
    entries = {"manifest.json": described.cid, "workspace": root} | {
        name: made(blocks) if made else None for name, made in more.items()
    }
    top = folder(blocks, *((name, cid) for name, cid in entries.items() if cid))
    return encode_car([top], blocks.items())


def names(*names: str) -> Any:
    return lambda blocks: folder(blocks, *((name, link(blocks)) for name in names))


def one(name: str, content: bytes = b"target", mode: int | None = None) -> Any:
    """Return what builds a folder with a link, or with `mode` a file."""
    tree = build_link(UNIXFS_V1_2025, content) if mode is None else build_file(UNIXFS_V1_2025, content, mode)

    def build(blocks: dict[Cid, bytes]) -> Cid:
        blocks.update((node.cid, bytes(node.data)) for node in tree.nodes)
        return folder(blocks, (name, tree.cid))

    return build


def nested(depth: int, width: int = 1) -> Any:
    def build(blocks: dict[Cid, bytes]) -> Cid:
        cid = folder(blocks)
        for _ in range(depth):
            cid = folder(blocks, *((f"{number}", cid) for number in range(width)))
        return cid

    return build


def large(blocks: dict[Cid, bytes]) -> Cid:
    """Return a file of 2^50 bytes in a few blocks."""
    tree, found = blocks_of(UNIXFS_V1_2025, bytes(1024))
    blocks.update(found)
    cid, size = tree.cid, tree.size
    for _ in range(4):
        sizes = [size] * 1024
        data = dagpb.encode_node([PBLink(cid, "", 0)] * 1024, UnixfsData(UnixfsKind.FILE, size=sum(sizes), sizes=sizes))
        cid, size = Cid.for_block(DAG_PB, data, 1), sum(sizes)
        blocks[cid] = data
    return folder(blocks, ("large", cid))


EMPTY = build_link(UNIXFS_V1_2025, b"target")
MANIFEST = {"version": 1, "engine": "fake", "agent": {"name": "Eve"}}
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "The CAR is cut off"),
    "garbage": (b"garbage" * 100, ""),
    "cut off": (archive()[:-1], "The CAR is cut off"),
    "changed": (archive()[:-1] + b"!", "A block of the CAR does not match its CID"),
    "lacking": (archive(workspace=lambda _: EMPTY.cid), "The CAR lacks the block"),
    "a file": (encode_car([EMPTY.cid], [(EMPTY.cid, EMPTY.nodes[0].data)]), ""),
    "a link as state": (archive(state=link), "state is not a folder"),
    "dots in a state": (archive(state=names("..")), "Invalid file name"),
    "more": (archive(other=folder), "its folder has an unexpected entry 'other'"),
    "no manifest": (archive(**{"manifest.json": None}), "its folder needs manifest.json and workspace"),
    "no workspace": (archive(workspace=lambda _: None), "its folder needs manifest.json and workspace"),
    "a folder as manifest": (archive(**{"manifest.json": folder}), "Not a file"),
    "a link as workspace": (archive(workspace=link), "workspace is not a folder"),
    "a huge manifest": (archive(b" " * (1024**2 + 1)), "manifest.json is larger than 1 MiB"),
    "no JSON": (archive(b"{"), "manifest.json: "),
    "a number as name": (archive({"agent": {"name": 5}}), "manifest.json: agent.name: "),
    "dots": (archive(workspace=names("..")), "Invalid file name"),
    "a slash": (archive(workspace=names("a/../../b")), "Invalid file name"),
    "a NUL": (archive(workspace=names("a\0b")), "Invalid file name"),
    "one name twice": (archive(workspace=names("a", "a")), "Invalid file name"),
    "a reserved name": (archive(workspace=names(".roost-staging")), "workspace: '.roost-staging' is a reserved name"),
    "a NUL in a link": (
        archive(workspace=one("a", b"b\0")),
        "workspace: 'a' is a symbolic link whose target has a NUL",
    ),
    "a NUL in a link of a state": (archive(state=one("a", b"b\0")), "state: 'a' is a symbolic link whose target has"),
    "a long link": (archive(workspace=one("a", b"b" * 4096)), "workspace: 'a' is a symbolic link of 4,096 bytes"),
    "a closed file": (archive(workspace=one("a", b"", mode=0o044)), "workspace: 'a' cannot be read by its owner"),
    "a link as scripts": (archive(workspace=one("manifest.json")), "workspace: 'manifest.json' is not a regular file"),
    "a folder as scripts": (
        archive(workspace=lambda blocks: folder(blocks, ("manifest.json", folder(blocks)))),
        "workspace: 'manifest.json' is not a regular file",
    ),
    "too deep": (archive(workspace=nested(257)), "The content is nested too deeply"),
    "too many": (archive(workspace=nested(40, 10)), "The folder has too many entries"),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_archive_leaves_nothing(
    target: RunningServer, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "MAX_BLOCKS", 5000)
    data, reason = HOSTILE[case]
    before = await state(target)
    refused = await send(target, data)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"].startswith(f"Invalid archive: {reason}")
    assert await state(target) == before


async def test_a_state_is_kept_where_no_address_serves_it(target: RunningServer) -> None:
    def state_of(blocks: dict[Cid, bytes]) -> Cid:
        return folder(blocks, ("sessions", folder(blocks, ("link", link(blocks)))))

    task = {"name": "Report", "schedule": {"kind": "cron", "expr": "0 8 * * *"}, "payload": {"kind": "agentTurn"}}
    imported = (await send(target, archive({"tasks": [task]}, state=state_of))).json()
    agent = imported["agent"]["agentId"]
    reader, db = target.roost.storage.content.reader, target.roost.core.db
    found = await db.read(lambda connection: store.list_snapshots(connection, agent)[-1])
    assert (found.state_cid, found.state_files, found.state_size) == (str(state_of({})), 1, len(b"target"))
    hidden, served = state_scope(found.tenant_id), content_scope(found.tenant_id)
    assert [one.path async for one in walk_tree(reader, hidden, state_of({}))] == ["", "sessions", "sessions/link"]
    for cid in (state_of({}), EMPTY.cid):
        with pytest.raises(ContentNotFound):
            await reader.read_block(served, cid)
    again = await export(target, imported["agent"], snapshotCid=found.cid)
    assert {state_of({}), EMPTY.cid} <= {block.cid for block in car.CarReader().feed(again.content)}
    client = target.agent_client(imported["agent"])
    assert (await client.get("/v0/tasks")).json()["tasks"] == []  # they are those of the state


async def test_limits_of_an_import_leave_no_trace(target: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await state(target)
    assert error(await send(target, archive(workspace=large))) == (413, "The archive is larger than an agent's disk")
    assert error(await send(target, archive({"engine": "other"}))) == (400, "Unknown engine")
    assert error(await send(target, archive(), name="<b>")) == (400, "Agent name contains invalid characters")
    with monkeypatch.context() as patch:
        patch.setattr(importer.AgentImporter, "_most_bytes", property(lambda _: 100), raising=False)
        assert error(await send(target, archive())) == (413, "The archive is larger than an agent's disk")
    with monkeypatch.context() as patch:
        patch.setattr(target.roost.storage.files.files.quota, "_capacities", dict.fromkeys(Plan, 0))
        assert error(await send(target, archive())) == (413, "The storage of your plan is full")
    with monkeypatch.context() as patch:
        patch.setattr(target.roost.agents.registry.runtimes.agents, "_quotas", dict.fromkeys(Plan, 0))
        assert error(await send(target, b"not even read")) == (403, "Agent limit reached")
    assert await state(target) == before


async def test_an_import_that_is_cut_off(target: RunningServer) -> None:
    before = await state(target)

    async def part() -> AsyncIterator[bytes]:
        yield archive()[:200]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await target.client(target.key()).post("/v0/agents/import", content=part())
    await until(lambda: unchanged(target, before))


async def test_a_crash_before_the_agent_exists(target: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await state(target)
    repository, content = target.roost.agents.registry.runtimes.agents, target.roost.storage.content

    def crash(*_: object) -> None:
        raise RuntimeError("crash")

    async def discard_nothing(_: str) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(repository, "create", crash)
        patch.setattr(content, "discard", discard_nothing)
        assert (await send(target, archive())).status_code == 500
    assert len((await state(target))[1]) == len(before[1]) + 1
    await target.roost.storage.content.sweep(timedelta(0))
    assert await state(target) == before


async def test_a_crash_after_it_is_continued(tmp_path: Path, database_url: str) -> None:
    task = {
        "name": "Report",
        "schedule": {"kind": "cron", "expr": "0 8 * * *"},
        "payload": {"kind": "agentTurn", "message": "x"},
    }
    late = {**task, "name": "Late", "schedule": {"kind": "at", "at": "2020-01-01T00:00:00Z"}}
    data = archive({"tasks": [task, late]}, names("one", "two"))
    async with running(tmp_path / "data", stop=False, ROOST_DATABASE_URL=database_url) as server:
        await server.roost.core.operations.stop()
        request = asyncio.create_task(send(server, data))
        await until(lambda: has_agents(server))
        request.cancel()
    async with running(tmp_path / "data", ROOST_DATABASE_URL=database_url) as server:
        (agent,) = (await server.client(server.key()).get("/v0/agents")).json()["agents"]
        detail = server.client(server.key())
        agent = (await detail.get(f"/v0/agents/{agent['agentId']}")).json()["agent"]
        client = server.agent_client(agent)
        await until(lambda: has_tasks(client, "Report"))
        assert await shell(client, "find . -type l | sort") == "./one\n./two\n"


async def has_agents(server: RunningServer) -> bool:
    return (await state(server))[0] != []


async def unchanged(server: RunningServer, before: object) -> bool:
    return await state(server) == before


async def has_tasks(client: httpx.AsyncClient, *names: str) -> bool:
    answer = await client.get("/v0/tasks")
    return answer.status_code == 200 and tuple(task["name"] for task in answer.json()["tasks"]) == names


async def state(server: RunningServer) -> tuple[list[str], set[str]]:
    """Return the agents and all stored objects."""
    agents = (await server.client(server.key()).get("/v0/agents")).json()["agents"]
    return [agent["agentId"] for agent in agents], {
        blob.key async for blob in server.roost.drivers.storage.blobs.list()
    }
