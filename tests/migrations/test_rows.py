"""Rows of any revision survive the following upgrades, and the services can use them."""

import struct
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import jwt
import pytest
import sqlalchemy as sa

from roost import work
from roost.agents.library.instances import store as template_instances
from roost.agents.library.templates import store as templates
from roost.agents.models.gateway import store as usage
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.git.manifests import RepositoryManifests
from roost.agents.workspace.scripts import store as scripts
from roost.agents.workspace.snapshots import store as snapshots
from roost.agents.workspace.snapshots.model import SkippedFile, SkipReason
from roost.core import clock
from roost.core.db import Connection, Database, sealed
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.git.manifest_contract import RepositoryState
from roost.drivers.http_sender.contract import HttpSender
from roost.events import store as events
from roost.identity.api_keys import ApiKeys
from roost.identity.caller import Plan
from roost.identity.errors import Unauthorised
from roost.identity.model import AUDIENCE, ISSUER, KeyFilter
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.groups.model import GroupFilter
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import FileFilter, PinFilter
from roost.storage.files.service import FileService, select_group_files
from roost.storage.files.signatures.service import SignatureService
from roost.storage.files.tus import store as transfers
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.service import UploadService
from roost.storage.gateways.analytics.model import AnalyticsQuery
from roost.storage.gateways.analytics.service import AnalyticsService, GatewayHitCounter
from roost.storage.gateways.model import GatewayDomainTaken, Plugin, is_request_admitted
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps.service import SwapService
from roost.storage.payments.instructions.model import PaymentAssets, PaymentInstructionFilter, PaymentInstructionUpdate
from roost.storage.payments.instructions.service import PaymentInstructionService, find_for_content
from roost.storage.payments.model import PaymentFilter, PaymentState
from roost.storage.payments.service import PaymentService
from roost.storage.pins import store as pins
from roost.storage.pins.model import PinQuery, PinState
from roost.storage.vectors import store as vectors
from roost.storage.vectors.vector_index import SegmentIndex, open_vector_index
from roost.storage.webhooks import store as webhooks
from roost.storage.webhooks.model import DeliveryState
from roost.storage.webhooks.service import WebhookService
from tests.migrations import agent_rows, storage_rows
from tests.migrations.conftest import list_revisions
from tests.migrations.row_values import OTHER, PAIR_SECRET, SEALER, TENANT, Row
from tests.migrations.sample_rows import ROWS
from tests.migrations.storage_rows import CID, CONTENT, SMALL, SMALL_CID
from tests.storage.webhooks.webhook_env import loopback_sender

PRIVATE, PUBLIC = ContentNetwork.PRIVATE, ContentNetwork.PUBLIC
REWRITTEN = {
    *(("file_keyvalues", "value"), ("operations", "subject")),
    *(("vector_segments", "matrix"), ("vector_segments", "chunks")),
}
"""Columns that a migration removed, or whose values it changed, on purpose."""


@pytest.fixture
def content(upgraded: Database, tmp_path: Path) -> ContentService:
    for pack, data in ((storage_rows.PACK, CONTENT), (storage_rows.SMALL_PACK, SMALL)):
        path = tmp_path / "blobs" / pack[:2] / pack
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return ContentService(upgraded, FolderStore(tmp_path / "blobs"))


def test_every_revision_is_told_of() -> None:
    assert sorted(ROWS) == list_revisions()


async def test_events_are_read(upgraded: Database) -> None:
    found = await upgraded.read(lambda connection: events.list_events(connection, TENANT, 6, 10))
    assert {one.number: one.type.value for one in found} == {7: "agent.changed", 8: "file.added"}
    assert (found[0].agent_id, found[1].agent_id, found[1].data) == ("a1", None, {"name": "töa"})


async def test_no_row_is_lost_and_every_table_has_some(upgraded: Database) -> None:
    def read(connection: Connection) -> tuple[list[Row], set[str]]:
        lost = [row for rows in ROWS.values() for row in rows if not _is_there(connection, *row)]
        tables = set(sa.inspect(connection).get_table_names()) - {"alembic_version"}
        return lost, {table for table in tables if not _is_there(connection, table, {})}

    assert await upgraded.write(read) == ([], set())


def _is_there(connection: Connection, table: str, row: Mapping[str, Any]) -> bool:
    kept = {name: value for name, value in row.items() if (table, name) not in REWRITTEN}
    same = [sa.column(name).is_not_distinct_from(value) for name, value in kept.items()]
    query = sa.select(sa.literal(1)).select_from(sa.table(table)).where(*same).limit(1)
    return connection.execute(query).first() is not None


async def test_keys_from_before_open_and_those_that_ended_do_not(upgraded: Database) -> None:
    keys = ApiKeys(upgraded, SEALER)

    def token(key_id: str) -> str:
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": TENANT, "jti": key_id, "iat": 0, "exp": 4_102_444_800}
        return jwt.encode(claims, agent_rows.SIGNING_KEY, "HS256", headers={"kid": "k1"})

    before, scoped = await keys.verify(token("before")), await keys.verify(token("scoped"))
    assert (before.tenant_id, before.scopes, before.is_counted) == (TENANT, frozenset(), False)
    assert scoped.scopes == {"org:files:read"}
    with pytest.raises(Unauthorised):
        await keys.verify(token("revoked"))
    for handle in ("h" * 20, "counted"):
        assert (await keys.verify_pair(handle, PAIR_SECRET)).tenant_id == TENANT
    with pytest.raises(Unauthorised):  # two requests of a key with one left
        await keys.verify_pair("counted", PAIR_SECRET)
    assert (await keys.list(TENANT, KeyFilter(limited=False), 0))[1] == 4


async def test_agents_and_what_they_have(upgraded: Database) -> None:
    agents = AgentRepository(upgraded, SEALER, dict.fromkeys(Plan, 10), "host")
    assert {agent.id for agent in await agents.list(TENANT)} == {"a1", "a2"}
    (secret,), _ = await SecretService(upgraded, SEALER, agents).list(TENANT)
    assert secret.value is not None
    assert secret.value.reveal() == "wört"
    assert (await upgraded.read(lambda connection: scripts.list_scripts(connection, "a1")))["build"].exit_code == 1
    counted = await upgraded.read(lambda connection: usage.list_usage(connection, TENANT, None, ""))
    assert [one.prompt_tokens for one in counted] == [2**40] * 2
    saved = await upgraded.read(lambda connection: snapshots.list_snapshots(connection, "a1"))
    assert {(one.id, one.label, one.commit_sha, one.state_cid, *one.state_packs) for one in saved} == {
        ("n1", "l" * 100, None, None),
        ("n2", None, "c" * 40, None),
        ("n3", None, None, "bafybeistate", "p2"),
        ("n4", None, None, None),
    }
    assert {one.id: set(one.searched) for one in saved} == {"n1": set(), "n2": set(), "n3": set(), "n4": {"0f"}}
    assert saved[0].skipped[1] == SkippedFile("\udcff", SkipReason.HOLDS_SECRET, "TOKEN")
    assert await upgraded.read(lambda connection: snapshots.get_index(connection, "a1")) == b"index"
    repository = await RepositoryManifests(upgraded, "host").load("a1")
    assert repository is not None
    assert repository.state == RepositoryState(2**40, "a" * 40)
    assert [pack.size for pack in repository.packs] == [12]


async def test_templates_of_old_rows_are_usable(upgraded: Database) -> None:
    found = await upgraded.read(lambda connection: templates.get_by_slug(connection, "reader"))
    assert found is not None
    assert (found.id, found.featured, found.secrets, found.skills) == ("t2", True, [{"name": "KEY"}], ["bafy"])
    version = await upgraded.read(lambda connection: templates.get_version(connection, "t2", 2))
    assert version is not None
    assert (version.parse_manifest().agent.name, version.size) == ("Reader", 2**40)
    assert await upgraded.read(lambda connection: templates.get_template(connection, "t1")) is None
    waiting = await upgraded.read(lambda connection: template_instances.list_waiting(connection, ["a1", "a2"]))
    assert [(one.agent_id, one.parse_manifest().agent.name) for one in waiting] == [("a1", "Reader")]


async def test_every_envelope_opens(upgraded: Database) -> None:
    def open_all(connection: Connection) -> int:
        lost = [sealed.reseal_page(connection, SEALER, column).lost for column in sealed.sealed_columns()]
        return sum(lost)

    assert await upgraded.write(open_all) == 0


async def test_files_are_listed_found_and_read(upgraded: Database, content: ContentService) -> None:
    files = FileService(upgraded)

    async def ids(network: ContentNetwork, **chosen: Any) -> list[str]:
        return [file.id for file in (await files.list(TENANT, network, FileFilter(**chosen), None, 100))[0]]

    assert (await ids(PRIVATE), await ids(PUBLIC)) == (["f1", "f6"], ["f3", "f2"])
    assert await ids(PRIVATE, group_id="photos") == ["f1"]
    pairs = ({"draft": True}, {"final": False}, {"said": "True"}, {"n": 1.5}, {"long": "v" * 1024}, {'ä"': "x"})
    assert [await ids(PRIVATE, keyvalues=pair) for pair in pairs] == [["f1"]] * len(pairs)
    assert await ids(PRIVATE, keyvalues={"said": "true"}) == []
    assert await ids(PUBLIC, keyvalues={"draft": True}) == ["f3"]
    assert [file.id for file in (await files.list_pins(TENANT, PinFilter(), 10, 0))[0]] == ["f3", "f2", "f4", "f5"]
    assert (await files.get(TENANT, PRIVATE, "promised")).id == "f1"
    largest = await files.get(TENANT, PRIVATE, "f6")
    assert (largest.size, largest.created_at.microsecond) == (5_000_000_000, 123_453)
    for scope, cid, data in (
        (ContentScope(PRIVATE, TENANT), CID, CONTENT),
        (ContentScope(PUBLIC), CID, CONTENT),
        (ContentScope(PUBLIC), SMALL_CID, SMALL),
    ):
        stat = await content.reader.stat(scope, Cid.parse(cid))
        assert b"".join([piece async for piece in content.reader.stream_file(scope, stat)]) == data


async def test_vectors_are_searched(upgraded: Database) -> None:
    query, files = struct.pack("<2f", 0, 1), select_group_files(TENANT, "photos")
    indexed = vectors.select_indexed(files, "m" * 300, 2)
    for open_index in (lambda _: SegmentIndex(), open_vector_index):
        index = open_index(upgraded)
        near = await upgraded.read(lambda connection, index=index: index.find_nearest(connection, indexed, query, 2))
        assert [(one.file_id, one.number, round(one.score, 5)) for one in near] == [("f1", 1, 0.8), ("f1", 0, 0)]
        texts = await upgraded.read(lambda connection, near=near: vectors.read_chunks(connection, near))
        assert [chunk.text for chunk in texts] == ["water", "töa"]
    grant = await upgraded.read(lambda connection: vectors.find_grant(connection, "photos", "a1"))
    assert grant is not None


async def test_groups_are_listed_and_let_go(upgraded: Database) -> None:
    groups = GroupService(upgraded, FileService(upgraded))
    for network, name in ((PRIVATE, "photos"), (PUBLIC, "ö" * 100)):
        (group,), _ = await groups.list(TENANT, network, GroupFilter(), None, 10)
        assert group.name == name
        await groups.delete(TENANT, network, group.id)
    assert (await FileService(upgraded).get(TENANT, PRIVATE, "f1")).metadata.group_id is None
    pin = await upgraded.read(lambda connection: pins.get_pin(connection, "p2"))
    assert pin is not None
    assert pin.request.group_id is None


async def test_bytes_stored_before_counting_are_counted(upgraded: Database) -> None:
    files = FileService(upgraded)
    assert [(await files.quota.usage(tenant))[0] for tenant in (TENANT, OTHER)] == [storage_rows.STORED, 0]
    await files.delete(TENANT, PRIVATE, "f6")
    await files.delete(OTHER, PRIVATE, "f7")
    assert [(await files.quota.usage(tenant))[0] for tenant in (TENANT, OTHER)] == [2 * len(CONTENT) + len(SMALL), 0]


async def test_gateways_admit_and_serve(upgraded: Database) -> None:
    gateways = StorageGatewayService(upgraded)
    page, count = await gateways.list(TENANT, 0, 10)
    assert (count, [gateway.id for gateway in page]) == (2, ["g1", "g2"])
    gateway = await gateways.get_by_domain("gateway-g1")
    assert gateway.plugins == set(Plugin)
    assert is_request_admitted(gateway, storage_rows.TOKEN, None, None)
    assert is_request_admitted(gateway, None, "192.0.2.9", None)
    assert is_request_admitted(gateway, None, None, "https://a.example.org/page")
    assert not is_request_admitted(gateway, "another", "198.51.100.1", "https://example.com")
    with pytest.raises(GatewayDomainTaken):  # deleted, and never available again
        await gateways.create(OTHER, "gateway-g3")
    swaps = SwapService(upgraded, gateways)
    assert [swap.id for swap in await swaps.history(TENANT, PUBLIC, CID, None)] == ["x3", "x2", "x1"]
    assert str(await swaps.find_served_cid(gateway, PUBLIC, Cid.parse(CID))) == SMALL_CID
    signature = await SignatureService(upgraded).get(TENANT, PUBLIC, SMALL_CID)
    assert (signature.file_id, signature.address) == ("f3", "0x" + "B" * 40)


async def test_payment_instructions_hold(upgraded: Database) -> None:
    files = FileService(upgraded)
    instructions = PaymentInstructionService(upgraded, files, PaymentAssets())
    page, _ = await instructions.list(TENANT, PaymentInstructionFilter(), None, 10)
    assert [(one.id, one.version) for one in page] == [("pi2", 2**31 - 1), ("pi1", 1)]
    assert [one.amount for one in page[0].payment_requirements] == ["10000", str(2**256 - 1)]
    assert page[0].payment_requirements[1].description == storage_rows.LONG_NAME
    for tenant, name in ((TENANT, "pi1"), (OTHER, "pi4")):
        found = await upgraded.read(
            lambda connection, owner=tenant: find_for_content(connection, owner, Cid.parse(CID))
        )
        assert found is not None
        assert found.id == name
    assert (await instructions.update(TENANT, "pi1", PaymentInstructionUpdate(name="x"))).version == 2
    await files.delete(TENANT, PRIVATE, "f1")
    assert await upgraded.read(lambda connection: find_for_content(connection, TENANT, Cid.parse(CID))) is None


async def test_payments_of_old_rows_are_usable(upgraded: Database) -> None:
    payments = PaymentService(upgraded, PaymentAssets(), None)
    page, _ = await payments.list(TENANT, PaymentFilter(cid=CID), None, 10)
    assert [(one.id, one.state) for one in page] == [
        ("pay5", PaymentState.REFUSED),
        ("pay4", PaymentState.SETTLING),
        ("pay3", PaymentState.UNKNOWN),
        ("pay2", PaymentState.SETTLED),
        ("pay1", PaymentState.SETTLED),
    ]
    (total,) = await payments.totals(TENANT)
    assert (total.count, total.amount) == (2, 10_000 + 2**256 - 1)


async def test_pins_go_on(upgraded: Database) -> None:
    def read(connection: Connection) -> list[tuple[str, PinState]]:
        return [(pin.id, pin.status) for pin in pins.list_pins(connection, TENANT, PinQuery(tuple(PinState)), None, 10)]

    assert await upgraded.read(read) == [
        ("p4", PinState.EXPIRED),
        ("p3", PinState.BACKFILLED),
        ("p2", PinState.RETRIEVING),
        ("p1", PinState.PINNED),
    ]
    retrievals = await upgraded.read(
        lambda connection: work.count_operations(connection, "pins.retrieve", f"pins/{TENANT}", *work.OperationState)
    )
    assert retrievals == 2
    wanted = PinQuery(meta={"a": "b"})
    (pin,) = await upgraded.read(lambda connection: pins.list_pins(connection, TENANT, wanted, None, 10))
    assert (pin.id, pin.request.hosts, pin.request.group_id) == ("p2", ("/dns4/a/tcp/4001",), "open")


async def test_uploads_in_parts_go_on(upgraded: Database, content: ContentService, tmp_path: Path) -> None:
    uploads = UploadService(upgraded, content, FileService(upgraded), dict.fromkeys(Plan, 2**40))
    drafts = DraftStore(tmp_path / "uploads", FolderStore(tmp_path / "blobs"))
    service = TusUploadService(upgraded, drafts, content, uploads, "http://uploads.localhost")
    transfer = await service.find("file-of-t1", storage_rows.TRANSFER_TOKEN)
    assert (transfer.offset, transfer.length, transfer.cid) == (len(CONTENT) - 1, len(CONTENT), None)
    kept = await upgraded.read(lambda connection: transfers.leaf_digests(connection, "t1"))
    assert kept == storage_rows.tree(CONTENT).leaves[:32]
    assert (await service.find("file-of-t3", "3")).cid == CID
    count, expected = await upgraded.read(
        lambda connection: transfers.count_unfinished(connection, TENANT, clock.utc_now())
    )
    assert (count, expected) == (2, len(CONTENT))


async def test_webhooks_are_told_and_their_secrets_sign(upgraded: Database) -> None:
    sender: HttpSender = loopback_sender()
    service, files = WebhookService(upgraded, SEALER, sender), FileService(upgraded)
    files.add_listener(service.add_file_event)
    assert [webhook.id for webhook in await service.list(TENANT)] == ["w1", "w2"]
    page, _ = await service.list_deliveries(TENANT, "w1", None, None, 10)
    assert [(one.id, one.state) for one in page] == [
        ("v4", DeliveryState.DELIVERED),
        ("v3", DeliveryState.FAILED),
        ("v2", DeliveryState.SENDING),
        ("v1", DeliveryState.PENDING),
    ]
    operations = [await upgraded.read(lambda c, name=name: work.get_operation(c, name)) for name in ("v1", "v2", "v5")]
    assert [(one.kind, one.subject, one.tenant_id, one.state) for one in operations] == [
        ("webhooks.deliver", "webhook/w1", TENANT, "pending"),
        ("webhooks.deliver", "webhook/w1", TENANT, "pending"),
        ("webhooks.deliver", "webhook/w2", TENANT, "paused"),
    ]
    assert operations[0].run_after == page[-1].next_at
    for absent in ("v3", "v4", "v6"):
        with pytest.raises(work.OperationNotFound):
            await upgraded.read(lambda c, absent=absent: work.get_operation(c, absent))
    assert (await service.redeliver(TENANT, "w1", "v3")).state is DeliveryState.PENDING
    assert (await upgraded.read(lambda c: work.get_operation(c, "v3"))).tenant_id == TENANT
    held = await upgraded.read(lambda connection: webhooks.list_secrets(connection, "w1", clock.utc_now()))
    assert {SEALER.open(row.sealed, f"webhook_secrets/w1/{row.id}").reveal() for row in held} == {
        b"whs-new",
        b"whs-old",
    }


async def test_analytics_include_old_hits(upgraded: Database) -> None:
    retention_days = (clock.utc_now().date() - date(2025, 1, 1)).days
    counter = GatewayHitCounter(upgraded, retention_days)
    analytics = AnalyticsService(upgraded, StorageGatewayService(upgraded), counter, retention_days)
    days = date(2025, 11, 20), date(2025, 11, 21)
    query = AnalyticsQuery(*days, "gateway-g1", {}, "bandwidth", ascending=False, limit=10)
    total, _ = await analytics.list_periods(TENANT, query, "day")
    assert (total.requests, total.bandwidth) == (6, 2**50 + 900_000)
    assert list(await analytics.list_top_values(TENANT, query, "cid")) == ["other", CID]
