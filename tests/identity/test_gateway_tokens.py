"""Gateway tokens: read, rotated, deleted; the old token is invalid at once (cases A8, A9)."""

import asyncio

import pytest

from roost.core.db import Database
from roost.core.seal import Sealer, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import CallerKind
from roost.identity.errors import Unauthorised, UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens


@pytest.fixture
def gateways(database: Database) -> GatewayTokens:
    return GatewayTokens(database, Sealer(Sensitive(bytes(32))))


@pytest.fixture
def tenant_id(database: Database) -> str:
    return database.run(lambda c: tenants.ensure_tenant(c, "acme").id)


@pytest.fixture
def token(database: Database, gateways: GatewayTokens, tenant_id: str) -> str:
    return database.run(lambda c: gateways.mint(c, "agent-1", tenant_id)).reveal()


async def test_a_token_names_its_agent_and_tenant(gateways: GatewayTokens, token: str, tenant_id: str) -> None:
    caller = await gateways.verify(token)
    assert (caller.kind, caller.agent_id, caller.tenant_id) == (CallerKind.GATEWAY, "agent-1", tenant_id)
    assert (await gateways.read("agent-1")).reveal() == token
    assert await gateways.get_tenant_id("agent-1") == tenant_id


async def test_rotation_kills_the_old_token_at_once(gateways: GatewayTokens, token: str) -> None:
    heard: list[str] = []
    gateways.subscribe(heard.append)
    await gateways.verify(token)
    new = (await gateways.rotate("agent-1")).reveal()
    assert new != token
    assert heard == ["agent-1"]
    with pytest.raises(Unauthorised):
        await gateways.verify(token)
    assert (await gateways.verify(new)).agent_id == "agent-1"


async def test_many_rotations_at_once_leave_one_current_token(gateways: GatewayTokens, token: str) -> None:
    rotated = await asyncio.gather(*(gateways.rotate("agent-1") for _ in range(20)))
    current = await gateways.read("agent-1")
    for candidate in [Sensitive(token), *rotated]:
        if candidate == current:
            assert (await gateways.verify(candidate.reveal())).agent_id == "agent-1"
        else:
            with pytest.raises(Unauthorised):
                await gateways.verify(candidate.reveal())


async def test_unknown_tokens_are_refused(gateways: GatewayTokens, token: str) -> None:
    for guess in ("", "rst_gw_", token[:-1], token + "0", "x" * 300, "rst_gw_" + "\udcff"):
        with pytest.raises(Unauthorised):
            await gateways.verify(guess)
    for lookup in (gateways.get_tenant_id, gateways.read, gateways.rotate):
        with pytest.raises(UnknownAgent):
            await lookup("nobody")


async def test_a_forgotten_agent_has_no_token(database: Database, gateways: GatewayTokens, token: str) -> None:
    await gateways.verify(token)
    database.run(lambda c: gateways.revoke(c, "agent-1"))
    gateways.notify_changed("agent-1")
    with pytest.raises(Unauthorised):
        await gateways.verify(token)


async def test_a_sealed_token_opens_only_in_its_own_row(
    database: Database, gateways: GatewayTokens, token: str, tenant_id: str
) -> None:
    """Ciphertexts that are swapped in the database do not open (case E3)."""
    database.run(lambda c: gateways.mint(c, "agent-2", tenant_id))

    def swap(connection):
        rows = connection.exec_driver_sql("SELECT agent_id, sealed FROM gateway_tokens ORDER BY agent_id").all()
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        for agent_id, sealed in ((rows[0][0], rows[1][1]), (rows[1][0], rows[0][1])):
            connection.exec_driver_sql(
                f"UPDATE gateway_tokens SET sealed = {mark} WHERE agent_id = {mark}", (bytes(sealed), agent_id)
            )

    database.run(swap)
    with pytest.raises(UnsealFailed):
        await gateways.read("agent-1")


def test_the_database_holds_no_token(database: Database, token: str) -> None:
    rows = database.run(lambda c: c.exec_driver_sql("SELECT * FROM gateway_tokens").all())
    assert token.encode() not in b"|".join(
        bytes(v) if isinstance(v, bytes | memoryview) else str(v).encode() for v in rows[0]
    )


@pytest.mark.parametrize("change", ["rotate", "forget"])
async def test_work_by_a_token_ends_with_it(
    database: Database, gateways: GatewayTokens, token: str, change: str
) -> None:
    begun, left = asyncio.Event(), list[str]()

    async def work() -> None:
        async with gateways.hold_open("agent-1"):
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                left.append(token)

    tasks = [asyncio.create_task(work()) for _ in range(3)]
    await begun.wait()
    async with gateways.hold_open("agent-2"):
        if change == "rotate":
            await asyncio.gather(gateways.rotate("agent-1"), gateways.rotate("agent-1"))
        else:
            await database.write(lambda connection: gateways.revoke(connection, "agent-1"))
            gateways.notify_changed("agent-1")
        for task in tasks:
            with pytest.raises(Unauthorised):
                await task
        await asyncio.sleep(0)
    assert len(left) == 3


async def test_failures_while_held_are_raised_unchanged(gateways: GatewayTokens, token: str) -> None:
    with pytest.raises(TimeoutError):
        async with gateways.hold_open("agent-1"):
            raise TimeoutError
    async with gateways.hold_open("agent-1"):
        pass
    await gateways.rotate("agent-1")
    await asyncio.sleep(0)
    assert token


@pytest.mark.parametrize("is_rotated", [True, False])
async def test_a_stream_ends_when_another_server_changes_the_token(
    gateways: GatewayTokens, token: str, database: Database, dialect: str, *, is_rotated: bool
) -> None:
    if dialect == "sqlite":  # it has one server, where `hold_open` ends the stream
        return
    caller = await gateways.verify(token)
    other = GatewayTokens(database, Sealer(Sensitive(bytes(32))))

    async def stream() -> None:
        async with asyncio.timeout(1.5), gateways.hold_open("agent-1", caller.token_digest):
            if is_rotated:
                await other.rotate("agent-1")
            await asyncio.Event().wait()

    with pytest.raises(Unauthorised if is_rotated else TimeoutError):
        await stream()
