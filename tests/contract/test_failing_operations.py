"""Work that always fails ends in a state with a reason that its owner sees, and the agent's next work goes on.

Every kind of operation that the server registers needs a scenario here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx2 as httpx
import pytest

from roost import work
from roost.agents.registry.model import Agent, AgentState
from roost.core import clock
from roost.core.problem import ServiceUnavailable
from roost.warden_client.connection import WardenConnector
from roost.warden_client.errors import WardenFailed
from roost.work import OperationState
from roost.work.faults import count_faults
from roost.work.model import CRASH_RETRIES
from roost.work.store import operations
from tests.contract.test_pins import NOWHERE
from tests.contract.test_vectors import upload
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container
MOST_RETRIES = 5
"""Of kinds that may try for days."""


@dataclass(frozen=True)
class Owner:
    """The owner of an agent; `agent` is its record."""

    server: RunningServer
    client: httpx.AsyncClient
    storage: httpx.AsyncClient
    agent: dict[str, Any]

    @property
    def id(self) -> str:
        return self.agent["agentId"]

    async def read(self, path: str) -> str:
        """Return the text of a response about the agent."""
        answer = await self.client.get(f"/v0/agents/{self.id}{path}")
        assert answer.status_code == 200, answer.text
        return answer.text

    async def enqueue(self, kind: str, payload: Any = None, subject: str = "") -> None:
        db, host = self.server.roost.core.db, self.server.roost.core.host.id
        await db.write(lambda c: work.add_operation(c, kind, f"{self.id}{subject}", payload, host=host))

    async def start_with(self, kind: str, payload: Any = None) -> None:
        """Enqueue what an agent in the state `starting` waits for."""
        repository = self.server.roost.agents.registry.runtimes.agents
        await self.server.roost.core.db.write(lambda c: repository.set_state(c, self.id, AgentState.STARTING))
        await self.enqueue(kind, payload)

    async def find_agent(self) -> Agent:
        return await self.server.roost.agents.registry.runtimes.agents.get(self.id)


@dataclass(frozen=True)
class Scenario:
    """How a kind comes to be, and the text of the response that shows its owner how it ended."""

    begin: Callable[[Owner], Awaitable[object]]
    show: Callable[[Owner], Awaitable[str]]


async def show_faults(owner: Owner) -> str:
    faults = json.loads(await owner.read(""))["faults"]
    return json.dumps([fault["reason"] for fault in faults])


async def show_status(owner: Owner) -> str:
    record = json.loads(await owner.read(""))["agent"]
    assert record["status"] == "failed"
    return record["statusReason"]


async def show_sync(owner: Owner) -> str:
    status = json.loads(await owner.read("/snapshots/sync"))
    assert status["message"].startswith("Not saved since ")
    query = {"after": "oldest", "types": "snapshot.failed"}
    async with asyncio.timeout(10), owner.client.stream("GET", "/v0/events", params=query) as events:
        assert "event: snapshot.failed" in [line async for line in _until_blank(events.aiter_lines())]
    return status["message"]


async def _until_blank(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the lines of the first event."""
    async for line in lines:
        yield line
        if line.startswith("data: "):
            return


async def show_system(owner: Owner) -> str:
    found = await owner.server.roost.core.db.read(count_faults)
    assert found > 0
    rows = await owner.server.roost.core.db.read(lambda c: c.execute(operations.select()).all())
    return json.dumps([row.error for row in rows])


async def begin_scripts(owner: Owner) -> None:
    manifest = json.dumps({"scripts": {"build": "true"}}).encode()
    path = {"path": "manifest.json"}
    (
        await owner.server.agent_client(owner.agent).put("/v0/files/content", params=path, content=manifest)
    ).raise_for_status()
    await owner.enqueue("agent.scripts", {"anew": True}, "/scripts")


async def begin_commit(owner: Owner) -> None:
    snapshot = json.loads(await owner.read("/snapshots"))["snapshots"][0]
    await owner.enqueue("agent.commit", snapshot["snapshotId"], "/git")


async def begin_reset(owner: Owner) -> None:
    snapshot = json.loads(await owner.read("/snapshots"))["snapshots"][0]
    body = {"snapshotCid": snapshot["snapshotCid"]}
    failed = await owner.client.post(f"/v0/agents/{owner.id}/snapshots/reset", json=body)
    assert failed.status_code >= 500


async def begin_snapshot(owner: Owner) -> None:
    assert (await owner.client.post(f"/v0/agents/{owner.id}/snapshots/sync")).status_code >= 500


async def begin_delete(owner: Owner) -> None:
    failed = await owner.client.delete(f"/v0/agents/{owner.id}")
    assert failed.status_code == 500


async def show_next_deletion(owner: Owner) -> str:
    db = owner.server.roost.core.db
    again = await db.read(lambda c: work.find_last_unfinished(c, "agent.delete", owner.id))
    assert again is not None
    assert timedelta(minutes=50) < again.run_after - clock.utc_now() <= timedelta(hours=1)
    return await show_system(owner)


async def begin_vectors(owner: Owner) -> None:
    file = await upload(owner.storage, "text")
    await owner.storage.post(f"/v3/vectorize/files/{file}")


async def show_vectors(owner: Owner) -> str:
    found = (await owner.storage.get("/v3/files/private")).json()["data"]["files"]
    states = [(await owner.storage.get(f"/v3/vectorize/files/{file['id']}")).json()["data"] for file in found]
    assert {state["state"] for state in states} == {"failed"}
    return json.dumps([state["reason"] for state in states])


async def begin_pin(owner: Owner) -> None:
    (await owner.storage.post("/v3/files/public/pin_by_cid", json={"cid": NOWHERE})).raise_for_status()


async def show_pin(owner: Owner) -> str:
    (job,) = (await owner.storage.get("/v3/files/public/pin_by_cid")).json()["data"]["jobs"]
    assert job["status"] == "expired"
    return await show_system_errors(owner)


async def show_system_errors(owner: Owner) -> str:
    rows = await owner.server.roost.core.db.read(lambda c: c.execute(operations.select()).all())
    return json.dumps([row.error for row in rows])


async def begin_webhook(owner: Owner) -> None:
    hook = (await owner.storage.post("/v3/webhooks", json={"url": "https://receiver.example/"})).json()["data"]
    (await owner.storage.post(f"/v3/webhooks/{hook['id']}/test")).raise_for_status()


async def begin_delivery(owner: Owner) -> None:
    (await owner.storage.post("/v3/webhooks", json={"url": "https://receiver.example/"})).raise_for_status()
    await upload(owner.storage, "text")


async def show_delivery(owner: Owner) -> str:
    (hook,) = (await owner.storage.get("/v3/webhooks")).json()["data"]["webhooks"]
    found = (await owner.storage.get(f"/v3/webhooks/{hook['id']}/deliveries")).json()["data"]["deliveries"]
    assert {delivery["state"] for delivery in found} == {"failed"}
    return json.dumps([delivery["error"] for delivery in found])


async def begin_offer(owner: Owner) -> None:
    await upload(owner.storage, "text", network="public")


async def begin_survey(owner: Owner) -> None:
    await owner.server.roost.core.db.write(lambda c: work.hasten_operations(c, "offers"))


async def show_next_survey(owner: Owner) -> str:
    assert await owner.server.roost.core.db.read(lambda c: work.find_last_unfinished(c, "offers.survey", "offers"))
    return await show_system(owner)


SCENARIOS: dict[str, Scenario] = {
    "agent.start": Scenario(lambda owner: owner.start_with("agent.start"), show_status),
    "agent.update": Scenario(lambda owner: owner.start_with("agent.update", {"to": "2"}), show_status),
    "agent.restore": Scenario(lambda owner: owner.start_with("agent.restore", {}), show_status),
    "agent.reset": Scenario(begin_reset, show_faults),
    "agent.snapshot": Scenario(begin_snapshot, show_sync),
    "agent.commit": Scenario(begin_commit, show_faults),
    "agent.skills": Scenario(lambda owner: owner.enqueue("agent.skills"), show_faults),
    "agent.push": Scenario(lambda owner: owner.enqueue("agent.push"), show_faults),
    "agent.import_tasks": Scenario(lambda owner: owner.enqueue("agent.import_tasks", [], "/tasks"), show_faults),
    "agent.scripts": Scenario(begin_scripts, show_faults),
    "agent.move": Scenario(lambda owner: owner.enqueue("agent.move", {"to": "docker"}), show_faults),
    "agent.delete": Scenario(begin_delete, show_next_deletion),
    "vectors.vectorize": Scenario(begin_vectors, show_vectors),
    "pins.retrieve": Scenario(begin_pin, show_pin),
    "webhooks.test": Scenario(begin_webhook, show_delivery),
    "webhooks.deliver": Scenario(begin_delivery, show_delivery),
    "offers.settle": Scenario(begin_offer, show_system),
    "offers.survey": Scenario(begin_survey, show_next_survey),
}
FAULTS: list[tuple[type[Exception], str]] = [
    (RuntimeError, "Internal error"),
    (ServiceUnavailable, "It never works"),
    (WardenFailed, "It broke"),
]
"""Errors of handlers, and the reasons that owners see."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    options: dict[str, Any] = {"ROOST_NETWORK": "kubo", "ROOST_KUBO_API": "http://127.0.0.1:9"}
    async with running(tmp_path_factory.mktemp("d") / "data", **options) as server:
        yield server


@pytest.fixture
async def owner(server: RunningServer, tenant: str) -> Owner:
    key = server.key(tenant)
    client = server.client(key)
    agent = (await client.post("/v0/agents", json={"name": "a"})).json()["agent"]
    await client.post(f"/v0/agents/{agent['agentId']}/snapshots/sync")
    return Owner(server, client, server.client(key, "api.localhost"), agent)


async def find_last(server: RunningServer, kind: str) -> Any:
    """Return the newest operation of a kind that has ended."""
    query = operations.select().where(operations.c.kind == kind, operations.c.finished_at.is_not(None))
    return await server.roost.core.db.read(
        lambda c: c.execute(query.order_by(operations.c.number.desc()).limit(1)).first()
    )


async def test_every_kind_of_operation_has_a_scenario(server: RunningServer) -> None:
    assert server.roost.core.operations._handlers.keys() == SCENARIOS.keys()


@pytest.mark.parametrize(("fault", "reason"), FAULTS, ids=lambda fault: getattr(fault, "__name__", "reason"))
@pytest.mark.parametrize("kind", SCENARIOS)
async def test_an_operation_that_always_fails_ends_with_a_reason(
    owner: Owner, kind: str, fault: type[Exception], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = list[str]()

    async def fail(operation: Any) -> None:
        attempts.append(operation.id)
        raise fault(reason)

    handlers = owner.server.roost.core.operations._handlers
    spec = handlers[kind]
    assert spec.retries <= 10_000
    retries = min(spec.retries, MOST_RETRIES)
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))
    monkeypatch.setattr("roost.agents.lifecycle.workflows.delete._TIMEOUT_SECONDS", 20.0)
    monkeypatch.setitem(handlers, kind, replace(spec, handler=fail, retries=retries))
    before = await find_last(owner.server, kind)
    await SCENARIOS[kind].begin(owner)
    async with asyncio.timeout(30):
        while (ended := await find_last(owner.server, kind)) is None or (before and ended.id == before.id):
            await asyncio.sleep(0.01)
    bound = {RuntimeError: min(retries, CRASH_RETRIES), ServiceUnavailable: retries}.get(fault, 0) + 1
    assert (ended.state, ended.error["message"]) == (OperationState.FAILED, reason)
    assert attempts.count(ended.id) == ended.attempts == bound
    assert reason in await SCENARIOS[kind].show(owner)
    monkeypatch.setitem(handlers, kind, spec)
    if kind != "agent.delete":
        saved = await owner.client.post(f"/v0/agents/{owner.id}/snapshots/sync")
        assert saved.status_code == 200, saved.text
        assert (await owner.client.post(f"/v0/agents/{owner.id}/restart")).status_code == 200


@pytest.mark.parametrize("op", ["scan", "read_files", "apply", "write", "start", "exec"])
async def test_a_container_that_always_refuses_a_request_stops_no_other_work(
    owner: Owner, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every operation of an agent, with its own handler, ends while the warden fails; then the agent works again."""
    send = WardenConnector.send_request
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))

    async def refuse(warden: WardenConnector, name: str, request: Any, seconds: float) -> Any:
        if name == op:
            raise WardenFailed("It broke")
        return await send(warden, name, request, seconds)

    cid = json.loads(await owner.read("/snapshots"))["snapshots"][0]["snapshotCid"]
    monkeypatch.setattr(WardenConnector, "send_request", refuse)
    path = f"/v0/agents/{owner.id}"
    async with asyncio.timeout(60):
        answers = [
            await owner.client.post(f"{path}/snapshots/sync"),
            await owner.client.post(f"{path}/snapshots/reset", json={"snapshotCid": cid, "state": True}),
            await owner.client.post(f"{path}/restart"),
            await owner.client.post(f"{path}/scripts/retry"),
        ]
    assert {answer.status_code for answer in answers} <= {200, 404, 500, 503}
    db = owner.server.roost.core.db
    async with asyncio.timeout(30):
        while await db.read(lambda c: work.is_subject_busy(c, owner.id)):
            await asyncio.sleep(0.01)
    assert (await owner.find_agent()).state is not AgentState.STARTING
    monkeypatch.setattr(WardenConnector, "send_request", send)
    assert (await owner.client.post(f"{path}/restart")).status_code == 200
    assert (await owner.client.post(f"{path}/snapshots/reset", json={"snapshotCid": cid})).status_code == 200
    assert json.loads(await owner.read("/snapshots/sync"))["fault"] is None
