"""What a snapshot leaves out because it holds a credential."""

import httpx2 as httpx

from roost.agents.setup.channels.model import Channel
from roost.agents.setup.channels.repository import ChannelRepository
from roost.core.sensitive import Sensitive
from tests.contract.test_snapshots import agent, client, reset, shell, sync
from tests.support.server import RunningServer

__all__ = ["agent", "client"]
LARGE = 3_000_000  # bytes of a file that is streamed


async def test_special_files_and_secrets_are_named(client: httpx.AsyncClient, server: RunningServer) -> None:
    owner = server.client(server.key())
    agent_id = str(client.headers["Host"]).split(".")[0]
    value = "a value that nobody may see"
    secret = (await owner.post("/v0/secrets", json={"name": "TOKEN", "value": value})).json()["secret"]
    await owner.post(f"/v0/agents/{agent_id}/secrets", json={"secretIds": [secret["id"]]})
    await shell(client, f"mkfifo pipe; echo 'key={value}' > leak; echo fine > fine; chmod 0 fine; chmod 644 fine")
    taken = await sync(client)
    assert {(file["path"], file["reason"], file["secret"]) for file in taken["skipped"]} == {
        ("pipe", "special", None),
        ("leak", "secret", "TOKEN"),
    }
    await shell(client, "echo changed > fine")
    await reset(client, taken["snapshotCid"])
    assert await shell(client, "cat fine; cat leak; ls") == f"fine\nkey={value}\nfine\nleak\npipe\n"
    await owner.delete(f"/v0/agents/{agent_id}/secrets/{secret['id']}")
    assert (await sync(client))["skipped"] == [{"path": "pipe", "reason": "special", "secret": None}]


async def test_files_from_before_a_secret_are_searched_for_it(client: httpx.AsyncClient, server: RunningServer) -> None:
    owner = server.client(server.key())
    agent_id = str(client.headers["Host"]).split(".")[0]
    secret, large = {"name": "LATE", "value": "the first late value"}, f"head -c {LARGE} /dev/zero; "
    await shell(
        client, f"echo {secret['value']} > first; ({large} echo the second late value) > second; echo x > other"
    )
    before = await sync(client)
    assert before["skipped"] == []
    secret_id = (await owner.post("/v0/secrets", json=secret)).json()["secret"]["id"]
    await owner.post(f"/v0/agents/{agent_id}/secrets", json={"secretIds": [secret_id]})
    attached = await sync(client)
    assert [(file["path"], file["secret"]) for file in attached["skipped"]] == [("first", "LATE")]
    assert attached["changeSummary"] == "1 file deleted"
    await owner.put(f"/v0/secrets/{secret_id}", json={"value": "the second late value"})
    assert [file["path"] for file in (await sync(client))["skipped"]] == ["second"]
    await reset(client, before["snapshotCid"])  # to what was not searched for the value
    assert [file["path"] for file in (await sync(client))["skipped"]] == ["second"]
    await owner.delete(f"/v0/agents/{agent_id}/secrets/{secret_id}")
    assert (await sync(client))["snapshotCid"] == before["snapshotCid"]


async def test_the_platforms_own_credentials_are_left_out(client: httpx.AsyncClient, server: RunningServer) -> None:
    agent_id, core, repository = (
        client.headers["Host"].split(".")[0],
        server.roost.core,
        server.roost.agents.registry.runtimes.agents,
    )
    channel = Channel("slack", Sensitive("xoxb-a-bot"), Sensitive("xapp-an-app"), "open", (), enabled=True)
    await ChannelRepository(core.db, core.sealer, repository).save(agent_id, channel)
    gateway = client.headers["Authorization"].removeprefix("Bearer ")
    values = {
        "gateway token": gateway,
        "internal token": (await repository.get_internal_token(agent_id)).reveal(),
        "platform token": (await client.post("/v0/platform/token")).json()["token"],
        "channel slack": "xoxb-a-bot",
        "channel slack app": "xapp-an-app",
    }
    for name, value in values.items():
        await shell(client, f"echo 'token={value}' > '{name}'")
    await shell(client, f"printf %s 'x:{gateway}' | base64 -w0 > 'gateway token in a header'")
    found = {file["path"]: file["secret"] for file in (await sync(client))["skipped"]}
    assert found == {name: name for name in values} | {"gateway token in a header": "gateway token"}
