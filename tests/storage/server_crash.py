"""Kill a whole server repeatedly while clients use every kind of upload, and check the result.

`python -m tests.storage.server_crash FOLDER ROUNDS SEED [DATABASE]`. Servers are forks, so that they start fast. It
prints the number of acknowledged files, and of uploads in parts that continued after a crash.
"""

import asyncio
import base64
import ctypes
import hashlib
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import sqlalchemy as sa

from roost.core import clock
from roost.core.db import Connection, Database
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.runtime.contract import Runtime
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity.caller import Plan
from roost.storage.content import store
from roost.storage.content.model import ContentNetwork
from roost.storage.content.scrub import ContentScrubber
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.profile import PROFILES, V1
from roost.storage.files import store as files_store
from roost.storage.files.service import FileService
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.service import UploadService
from tests.contract.storage import keep
from tests.storage.cars import blocks_of, encode_car
from tests.storage.crash import forked
from tests.support.server import RunningServer, running

_PDEATHSIG = 1
LONGEST = 3.0
"""Seconds of work before a death, at most."""
EXAMINE_EVERY = 8
PINS = 60
SIZES = (30, 3_000, 70_000, 300_000, 1_100_000)
PART = "application/offset+octet-stream"


def content_of(name: str) -> bytes:
    return hashlib.shake_128(name.encode()).digest(int(name.split("-")[1]))


@dataclass
class AcknowledgedFiles:
    """Responses to clients by the names of files, which determine the content. `unsure`: sent without a response."""

    key: str
    gateway: str
    pinnable: dict[str, str]
    there: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    parts: dict[str, tuple[str, int]] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    acknowledged: int = 0
    resumed: int = 0


class CrashClients:
    """Clients of one server until it is killed."""

    def __init__(self, port: int, known: AcknowledgedFiles, chance: random.Random, mark: int) -> None:
        self._known, self._chance, self._mark, self._count = known, chance, mark, 0
        self._before = known.acknowledged
        self.over = False
        self.api = self._client("uploads.localhost", port, Authorization=f"Bearer {known.key}")
        self.visitor = self._client(f"{known.gateway}.gateways.localhost", port)

    async def close(self) -> None:
        await self.api.aclose()
        await self.visitor.aclose()

    async def work(self) -> None:
        """Run the clients until the server is gone."""
        ways = (self.form, self.form, self.signed, self.folder, self.in_car, self.in_parts, self.delete, self.pin)
        await asyncio.gather(*map(self._until_it_dies, ways))

    async def done(self, count: int) -> None:
        """Wait for that many responses."""
        while self._known.acknowledged < self._before + count:
            await asyncio.sleep(0.002)

    async def form(self) -> None:
        name = self._new("form")
        said = {"network": "public", "cid_version": self._chance.choice(list(PROFILES))}
        await self._sent(name, "/v3/files", [("file", (name, content_of(name)))], said)

    async def signed(self) -> None:
        name = self._new("signed")
        asked = {"date": int(clock.utc_now().timestamp()), "expires": 600, "network": "public", "filename": name}
        address = urlsplit(_good(await self.api.post("/v3/files/sign", json=asked))["data"])
        await self._sent(name, f"{address.path}?{address.query}", [("file", (name, content_of(name)))], {})

    async def folder(self) -> None:
        name = self._new("folder")
        files = [("file", (f"{name}/{one}", content_of(f"{name}/{one}"))) for one in "abc"]
        await self._sent(name, "/v3/files", files, {"network": "public"})

    async def in_car(self) -> None:
        name = self._new("car")
        tree, blocks = blocks_of(V1, content_of(name))
        data = encode_car([tree.cid], blocks)
        await self._sent(name, "/v3/files", [("file", (name, data))], {"network": "public", "car": "true"})

    async def in_parts(self) -> None:
        if self._known.parts:
            name = next(iter(self._known.parts))
            path, told = self._known.parts[name]
            answer = await self.api.head(path)
            offset = int(answer.headers["Upload-Offset"])
            assert answer.status_code == 200
            assert offset >= told, "an acknowledged part is lost"
            self._known.resumed += 1
        else:
            name, offset = self._new("parts"), 0
            pairs = {"filename": name, "name": name, "network": "public"}
            said = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in pairs.items())
            headers = {"Upload-Length": str(len(content_of(name))), "Upload-Metadata": said}
            answer = await self.api.post("/v3/files", headers=headers)
            assert answer.status_code == 201, answer.text
            path = urlsplit(answer.headers["Location"]).path
            self._known.parts[name] = (path, 0)
        content = content_of(name)
        while "upload-cid" not in answer.headers:
            part = content[offset : offset + self._chance.choice((1, 70_000, 400_000))]
            answer = await self.api.patch(
                path, headers={"Upload-Offset": str(offset), "Content-Type": PART}, content=part
            )
            assert answer.status_code == 204, answer.text
            offset += len(part)
            self._known.parts[name] = (path, offset)
        del self._known.parts[name]
        self._told(name, path.split("/")[3])

    async def delete(self) -> None:
        if not self._known.there:
            return
        name = self._chance.choice(list(self._known.there))
        self._known.unsure.add(name)
        _good(await self.api.delete(f"/v3/files/public/{self._known.there.pop(name)}"))
        self._known.unsure.discard(name)
        self._known.gone.add(name)

    async def pin(self) -> None:
        if not self._known.pinnable:
            return
        name, cid = self._known.pinnable.popitem()
        self._known.unsure.add(name)
        _good(await self.api.post("/v3/files/public/pin_by_cid", json={"cid": cid, "name": name}))
        self._known.pinned.add(name)

    async def check(self, *, whole: bool = False) -> None:
        """Check that nothing is lost or half stored; resolve the requests without a response."""
        known = self._known
        found = await self._listed()
        may_be = known.there.keys() | known.unsure | known.pinned | known.parts.keys()
        assert found.keys() <= may_be, f"not asked for, or deleted: {found.keys() - may_be}"
        for name, file_id in known.there.items():
            assert name in found, f"{name} is lost"
            assert found[name]["id"] == file_id
        for name, file in found.items():
            if whole or name not in known.checked:
                await self._check(name, file["cid"])
        for name in known.unsure - known.pinned:
            if name in found:
                known.there[name] = found[name]["id"]
            elif not name.startswith("pin"):
                known.gone.add(name)
        known.unsure = {name for name in known.unsure if name.startswith("pin") and name not in found}
        for name in known.pinned & found.keys():
            known.pinned.remove(name)
            known.there[name] = found[name]["id"]

    async def _until_it_dies(self, way: Callable[[], Awaitable[None]]) -> None:
        try:
            while not self.over:
                await way()
                await asyncio.sleep(0.002)
        except (httpx.NetworkError, httpx.ProtocolError):
            assert self.over, "the server broke off by itself"

    async def _check(self, name: str, cid: str) -> None:
        paths = [(f"{name}/{one}", f"/ipfs/{cid}/{one}") for one in "abc"] if name.startswith("folder") else []
        for of, path in paths or [(name, f"/ipfs/{cid}")]:
            answer = await self.visitor.get(path)
            assert (answer.status_code, answer.content == content_of(of)) == (200, True), f"{of}: {answer.status_code}"
        self._known.checked.add(name)

    async def _listed(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        token = ""
        while True:
            page = _good(await self.api.get("/v3/files/public", params={"limit": "1000", "pageToken": token}))["data"]
            found |= {file["name"]: file for file in page["files"]}
            token = page["next_page_token"]
            if not token:
                return found

    async def _sent(self, name: str, path: str, files: Any, said: dict[str, str]) -> None:
        self._known.unsure.add(name)
        answer = _good(await self.api.post(path, data={"name": name, **said}, files=files))
        self._known.unsure.discard(name)
        self._told(name, answer["data"]["id"])

    def _told(self, name: str, file_id: str) -> None:
        self._known.there[name] = file_id
        self._known.acknowledged += 1

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._chance.choice(SIZES)}-{self._mark}-{self._count}"

    @staticmethod
    def _client(host: str, port: int, **headers: str) -> httpx.AsyncClient:
        headers = {"Host": f"{host}:{port}", **headers}
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30, trust_env=False)


def _good(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    return answer.json()


class ServerProcesses:
    """Consecutive servers of one data folder, each in its own process."""

    def __init__(
        self, folder: Path, database: str | None, make_runtime: Callable[[Path], Runtime | None] = FakeRuntime
    ) -> None:
        """`make_runtime`: returns the runtime of the server with a data folder, None for the default one."""
        self.folder = folder
        self.environment: dict[str, Any] = {"ROOST_DATABASE_URL": database} if database else {}
        self._make_runtime = make_runtime

    def start(self, first: Callable[[RunningServer], Awaitable[Any]] | None = None) -> tuple[int, Any]:
        """Return the process and the result of `first`, or the port without one."""
        ours, theirs = os.pipe()

        async def live() -> None:
            runtime = self._make_runtime(self.folder)
            async with running(self.folder, runtime=runtime, stop=False, **self.environment) as server:
                said = server.port if first is None else await first(server)
                os.write(theirs, json.dumps(said).encode() + b"\n")
                await asyncio.Event().wait()

        def run() -> None:
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
            with (self.folder / "server.log").open("ab") as log:
                os.dup2(log.fileno(), 1)
            asyncio.run(live())

        assert threading.active_count() == 1, "a fork of threads may hang"
        child = forked(run)
        os.close(theirs)
        with os.fdopen(ours) as lines:
            line = lines.readline()
        assert line, "the server did not start"
        return child, json.loads(line)

    @staticmethod
    def kill(child: int) -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


async def prepare(server: RunningServer) -> dict[str, Any]:
    """Create a key, the gateway of its tenant, and another tenant's content to pin."""
    key = server.key()
    rows = (await server.client(key, "api.localhost").get("/v3/gateways")).json()["data"]["rows"]
    names = [f"pin-{SIZES[number % 3]}-{number}" for number in range(PINS)]
    files = {name: (await keep(server, "other", ContentNetwork.PUBLIC, content_of(name))).cid for name in names}
    return {"key": key, "gateway": rows[0]["domain"], "pinnable": files}


async def run_server_once(
    port: int, known: AcknowledgedFiles, chance: random.Random, mark: int, kill: Callable[[], None]
) -> None:
    clients = CrashClients(port, known, chance, mark)
    await clients.check()
    working = asyncio.create_task(clients.work())
    enough = asyncio.create_task(clients.done(chance.randrange(8)))
    await asyncio.wait({working, enough}, timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({working}, timeout=chance.random() * 0.03)  # a random time for the kill
    clients.over = True
    kill()
    enough.cancel()
    await working
    await clients.close()


async def check_acknowledged(port: int, known: AcknowledgedFiles) -> None:
    """Check that acknowledged pins become files, and that all files are complete."""
    clients = CrashClients(port, known, random.Random(0), -1)
    async with asyncio.timeout(60):
        await clients.check()
        while known.pinned:
            await asyncio.sleep(0.1)
            await clients.check()
    await clients.check(whole=True)
    await clients.close()


async def examine(folder: Path, database: str | None) -> None:
    """Check that after maintenance exactly the bytes of the rows exist, counted and complete."""
    moment = clock.utc_now() + timedelta(days=3)
    clock.utc_now = lambda: moment  # in this idle process
    db = Database(database or f"sqlite:///{folder / 'roost.db'}")
    blobs = FolderStore(folder / "blobs")
    content, files = ContentService(db, blobs), FileService(db)
    drafts = DraftStore(folder / "uploads", blobs)
    uploads = UploadService(db, content, files, dict.fromkeys(Plan, 1 << 30))
    transfers = TusUploadService(db, drafts, content, uploads, "")
    while await transfers.expire():
        pass
    await content.sweep()
    scrub = ContentScrubber(db, content.reader, float("inf"), 1)
    await scrub.scrub_due()
    await scrub.count_damaged()
    assert scrub.damaged_packs == 0, "half a pack is there"
    packs, holders, present, counted, summed = await db.read(_rows)
    assert {blob.key async for blob in blobs.list()} == packs, "objects leak, or are lost"
    assert holders == present, "content is held by nobody, or files hold nothing"
    assert counted == summed, f"what is kept is counted wrong: {counted}, {summed}"
    assert not list((folder / "blobs" / "new").iterdir()), "unfinished objects leak"
    assert not list((folder / "uploads").iterdir()), "drafts leak"
    db.close()


def _rows(connection: Connection) -> tuple[set[str], set[str], set[str], dict[str, int], dict[str, int]]:
    packs = set(connection.execute(sa.select(store.packs.c.id)).scalars())
    holders = set(connection.execute(sa.select(store.holds.c.holder)).scalars())
    present = sa.select(files_store.files.c.id).where(files_store.files.c.deleted_at.is_(None))
    ids = {f"file/{file_id}" for file_id in connection.execute(present).scalars()}
    counted = {row.tenant_id: row.size for row in connection.execute(sa.select(store.stored)) if row.size}
    sums = sa.select(store.holds.c.tenant_id, sa.func.sum(store.packs.c.size))
    sums = sums.join(store.packs, store.packs.c.id == store.holds.c.pack_id).group_by(store.holds.c.tenant_id)
    summed = {tenant: int(size) for tenant, size in connection.execute(sums) if size}
    return packs, holders, ids, counted, summed


def main(folder: Path, rounds: int, seed: int, database: str | None = None) -> None:
    chance = random.Random(seed)
    servers = ServerProcesses(folder, database)

    def examined() -> None:
        child = forked(lambda: asyncio.run(examine(folder, database)))
        assert os.waitpid(child, 0)[1] == 0

    child, said = servers.start(prepare)
    servers.kill(child)
    known = AcknowledgedFiles(**said)
    for number in range(rounds):
        if number % EXAMINE_EVERY == EXAMINE_EVERY - 1:
            examined()
            known.unsure |= known.parts.keys()
            known.parts.clear()
        child, port = servers.start()
        print(f"round {number}", file=sys.stderr)
        asyncio.run(run_server_once(port, known, chance, number, lambda child=child: servers.kill(child)))
    child, port = servers.start()
    asyncio.run(check_acknowledged(port, known))
    servers.kill(child)
    examined()
    print(known.acknowledged, known.resumed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
