"""Rows of the revisions of the storage services."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import V1
from tests.migrations.agent_rows import operation
from tests.migrations.row_values import FAR, OTHER, PAIR_SECRET, TENANT, THEN, Row, digest, key, sealed

LONG_NAME = "ä" * 255
LONG_ESCAPED = r"\u00e4" * 255
CONTENT = hashlib.shake_128(b"an upload").digest(300_000)
"""Two leaves and a root."""
SMALL = b"small"
TOKEN = "the token of a gateway"
TRANSFER_TOKEN = "f" * 64


def tree(content: bytes) -> DagTree:
    importer = UnixfsImporter(V1)
    importer.update(content)
    return importer.finish()


CID, SMALL_CID = str(tree(CONTENT).cid), str(tree(SMALL).cid)
PACK, SMALL_PACK, DAMAGED_PACK, EMPTY_PACK, UNHELD_PACK = (f"{number:032x}" for number in range(1, 6))
STORED = 2 * len(CONTENT) + len(SMALL) + 5_000_000_000
"""Bytes that the tenant holds: the first pack twice."""


def _pack(name: str, /, size: int, **more: Any) -> Row:
    row: dict[str, Any] = {"id": name, "size": size, "damaged": False, "created_at": THEN, "checked_at": None}
    return "packs", row | more


def _hold(pack: str, holder: str, tenant: str = TENANT, network: str = "private") -> Row:
    return "holds", {"pack_id": pack, "holder": holder, "tenant_id": tenant, "network": network}


def _block(digest: bytes, pack: str, **more: Any) -> Row:
    row: dict[str, Any] = {
        "digest": digest,
        "pack_id": pack,
        "codec": 0x55,
        "hash": 0x12,
        "place": 0,
        "offset": 0,
        "length": 0,
        "data": None,
    }
    return "blocks", row | more


def _event(number: int, kind: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {"tenant_id": TENANT, "number": number, "type": kind, "at": THEN + number, "agent_id": None}
    return "events", row | more


def _vectors(file: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "file_id": file,
        "tenant_id": TENANT,
        "operation_id": f"vectors of {file}",
        "state": "queued",
        "model": "",
        "dimension": 0,
        "chunks": 0,
        "chunks_done": 0,
        "reason": None,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "file_vectors", row | more


def _segment(file: str, chunks: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {"file_id": file, "number": 0, "matrix": None, "chunks": chunks}
    return "vector_segments", row | more


def _content(content: bytes, pack: str) -> Sequence[Row]:
    whole = tree(content)
    leaves = [whole.leaves[at : at + 32] for at in range(0, len(whole.leaves), 32)]
    rows = [
        _block(leaf, pack, offset=at * V1.chunk, length=min(V1.chunk, len(content) - at * V1.chunk))
        for at, leaf in enumerate(leaves)
    ]
    rows += [
        _block(node.cid.digest, pack, codec=0x70, place=2, length=len(node.data), data=node.data)
        for node in whole.nodes
    ]
    file = {"digest": whole.cid.digest, "pack_id": pack, "profile": "v1", "offset": 0, "size": len(content)}
    return [*rows, ("trees", file | {"leaves": whole.leaves})]


def _group(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "network": "private",
        "name": name,
        "is_public": False,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "groups", row | more


def _file(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "network": "private",
        "cid": CID,
        "name": name,
        "size": len(CONTENT),
        "number_of_files": 1,
        "mime_type": "application/octet-stream",
        "keyvalues": "{}",
        "group_id": None,
        "created_at": THEN,
        "updated_at": THEN,
        "expires_at": None,
        "deleted_at": None,
    }
    return "files", row | more


def _pair(file: str, key: str, value: str) -> Row:
    return "file_keyvalues", {"file_id": file, "key": key, "value": value}


def _gateway(name: str, /, **more: Any) -> Row:
    row = {"id": name, "tenant_id": TENANT, "domain": f"gateway-{name}", "created_at": THEN, "deleted_at": None}
    return "storage_gateways", row | more


def _control(name: str, kind: str, value: str, proof: bytes | None = None) -> Row:
    row = {"id": name, "gateway_id": "g1", "kind": kind, "value": value, "proof": proof, "created_at": THEN}
    return "storage_gateway_controls", row


def _swap(name: str, mapped: str | None, at: int) -> Row:
    row = {"id": name, "tenant_id": TENANT, "network": "public", "cid": CID, "mapped_cid": mapped, "created_at": at}
    return "swaps", row


def _pin(name: str, /, status: str, at: int, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "cid": CID,
        "name": None,
        "keyvalues": "{}",
        "group_id": None,
        "hosts": "[]",
        "meta": "{}",
        "status": status,
        "file_id": None,
        "created_at": THEN + at,
        "updated_at": FAR,
    }
    return "pins", row | more


def _transfer(name: str, /, token: str, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "digest": digest(token),
        "file_id": f"file-of-{name}",
        "tenant_id": TENANT,
        "length": 300_000,
        "limit": 1_073_741_824,
        "fields": '{"filename":"a.bin","network":"private"}',
        "mime_types": "[]",
        "profile": "v1",
        "offset": 0,
        "hashed": 0,
        "cid": None,
        "created_at": THEN,
        "expires_at": FAR,
    }
    return "transfers", row | more


def _webhook(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "url": "https://receiver.example/hook",
        "description": "",
        "events": "[]",
        "enabled": True,
        "disabled_reason": None,
        "failing_since": None,
        "created_at": THEN,
        "updated_at": THEN,
        "deleted_at": None,
    }
    return "webhooks", row | more


def _secret(name: str, webhook: str, expires_at: int | None = None) -> Row:
    envelope = sealed(name.encode(), f"webhook_secrets/{webhook}/{name}")
    row = {"id": name, "webhook_id": webhook, "sealed": envelope, "created_at": THEN, "expires_at": expires_at}
    return "webhook_secrets", row


def _delivery(name: str, /, state: str, at: int, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "webhook_id": "w1",
        "event_id": "e1",
        "state": state,
        "attempts": 0,
        "failures": 0,
        "status": None,
        "error": None,
        "created_at": THEN + at,
        "attempted_at": None,
        "next_at": FAR,
        "finished_at": None,
    }
    return "webhook_deliveries", row | more


def _served(day: str, **more: Any) -> Row:
    row: dict[str, Any] = {
        "tenant_id": TENANT,
        "day": day,
        "digest": bytes(16),
        "gateway_id": "g1",
        "cid": CID,
        "file_name": "unknown",
        "status": 200,
        "user_agent": "curl",
        "referer": "unknown",
        "requests": 3,
        "bandwidth": 900_000,
    }
    return "storage_gateway_served", row | more


ROWS: Mapping[str, Sequence[Row]] = {
    "0008": [
        _pack(PACK, len(CONTENT)),
        _pack(SMALL_PACK, len(SMALL), checked_at=THEN),
        _pack(DAMAGED_PACK, 5_000_000_000, damaged=True, checked_at=THEN),
        _pack(EMPTY_PACK, 0),
        _pack(UNHELD_PACK, 7),
        _hold(PACK, "file/f1"),
        _hold(PACK, "file/f2", network="public"),
        _hold(SMALL_PACK, "file/f3", network="public"),
        _hold(DAMAGED_PACK, "file/f6"),
        _hold(EMPTY_PACK, "file/f7", OTHER),
        *_content(CONTENT, PACK),
        *_content(SMALL, SMALL_PACK),
        _group("photos"),
        _group("open", network="public", is_public=True, name="ö" * 100),
        _file(
            "f1",
            group_id="photos",
            keyvalues='{"draft":true,"final":false,"said":"True","n":1.5,"\\u00e4\\"":"x","long":"' + "v" * 1024 + '"}',
        ),
        _pair("f1", "draft", "True"),
        _pair("f1", "final", "False"),
        _pair("f1", "said", "True"),
        _pair("f1", "n", "1.5"),
        _pair("f1", 'ä"', "x"),
        _pair("f1", "long", "v" * 1024),
        _file("f2", network="public", name=None, group_id="open"),
        _file("f3", network="public", name=LONG_NAME, cid=SMALL_CID, size=len(SMALL), keyvalues='{"draft":true}'),
        _pair("f3", "draft", "True"),
        _file("f4", network="public", deleted_at=THEN, created_at=THEN - 1),
        _file("f5", network="public", deleted_at=THEN, created_at=THEN - 2, cid="bafkreigone" + "x" * 117),
        _file("f6", cid="bafkreidamaged", size=5_000_000_000, expires_at=FAR, created_at=THEN - 3),
        _file("f7", tenant_id=OTHER, mime_type="directory", size=0, number_of_files=30_000),
    ],
    "0009": [
        _gateway("g1"),
        _gateway("g2", created_at=THEN + 1, domain="d" * 63),
        _gateway("g3", deleted_at=THEN),
        _control("c1", "access_tokens", "the to…", digest(TOKEN)),
        _control("c2", "ips", "192.0.2.0/24"),
        _control("c3", "hosts", "*.example.org"),
        (
            "storage_gateway_domains",
            {"id": "d1", "gateway_id": "g1", "domain": "files.example.org", "created_at": THEN},
        ),
        *(
            ("storage_gateway_plugins", {"gateway_id": "g1", "plugin_id": number, "created_at": THEN})
            for number in (1, 2)
        ),
    ],
    "0010": [
        (
            "signatures",
            {
                "file_id": "f3",
                "cid": SMALL_CID,
                "signature": "0x" + "a" * 130,
                "address": "0x" + "B" * 40,
                "created_at": THEN,
            },
        ),
        _swap("x1", SMALL_CID, THEN),
        _swap("x2", None, THEN + 1),
        _swap("x3", SMALL_CID, THEN + 2),
    ],
    "0011": [
        _pin("p1", "pinned", 1, file_id="f2"),
        _pin("p2", "retrieving", 2, name="n" * 255, group_id="open", hosts='["/dns4/a/tcp/4001"]', meta='{"a":"b"}'),
        _pin("p3", "backfilled", 3, keyvalues='{"k":"v","t":true}'),
        _pin("p4", "expired", 4),
    ],
    "0012": [
        _transfer("t1", TRANSFER_TOKEN, offset=300_000 - 1, hashed=V1.chunk),
        _transfer("t2", "2", length=None, mime_types='["image/png"]'),
        _transfer("t3", "3", offset=300_000, hashed=V1.chunk, cid=CID),
        ("transfer_leaves", {"transfer_id": "t1", "offset": 0, "digests": tree(CONTENT).leaves[:32]}),
    ],
    "0013": [
        key("pair", handle="h" * 20, proof=digest(PAIR_SECRET), max_uses=None, uses=0),
        key("counted", handle="counted", proof=digest(PAIR_SECRET), max_uses=2, uses=1),
    ],
    "0014": [],  # counted by the migration
    "0015": [
        _webhook("w1", events='["ipfs.private.file_added"]', description="ß" * 500, failing_since=THEN),
        _webhook("w2", enabled=False, disabled_reason="gone", url="https://" + "u" * 2040, created_at=THEN + 1),
        _webhook("w3", enabled=False, deleted_at=THEN),
        _secret("whs-new", "w1"),
        _secret("whs-old", "w1", FAR),
        (
            "webhook_events",
            {
                "id": "e1",
                "tenant_id": TENANT,
                "type": "ipfs.private.file_added",
                "body": '{"type":"ipfs.private.file_added"}',
                "created_at": THEN,
            },
        ),
        _delivery("v1", "pending", 1),
        _delivery("v2", "sending", 2, attempts=1, attempted_at=THEN),
        _delivery("v3", "failed", 3, attempts=8, failures=8, error="e" * 255, attempted_at=THEN, finished_at=THEN),
        _delivery("v4", "delivered", 4, attempts=1, status=204, attempted_at=THEN, finished_at=THEN),
        _delivery("v5", "pending", 5, webhook_id="w2"),
        _delivery("v6", "pending", 6, webhook_id="w3"),
    ],
    "0016": [
        _served("2025-11-20"),
        _served("2025-11-21", bandwidth=2**50, cid="other", file_name="ñ" * 255, user_agent="u" * 200),
    ],
    "0017": [],  # an index
    "0018": [],  # values
    "0019": [("promises", {"id": "promised", "file_id": "f1"})],
    "0021": [],  # values
    "0022": [],  # indexes
    "0048": [],  # the rows of segments in another form
    "0049": [],  # indexes
    "0051": [
        ("agent_copies", {"host_id": "h1", "agent_id": "a1"}),
        ("server_certificates", {"id": "servers", "sealed": sealed(b"key", "server_certificates/servers")}),
    ],
    **dict.fromkeys(("0050", "0052", "0055"), ()),  # columns
    "0053": [
        (
            "git_repositories",
            {
                "agent_id": "a1",
                "generation": 2**40,
                "main": "a" * 40,
                "pending": None,
                "packs": '[{"name":"pack-1","key":"k1","sizes":{"pack":5,"idx":7},"digest":"d1"}]',
                "changed_at": THEN,
                "collected_at": THEN,
            },
        )
    ],
    "0054": [("leases", {"name": "content scrub", "token": 2, "expires_at": THEN})],
    "0056": [("rate_usage", {"process_id": "p", "usage": '{"u1":{"requests":{"::1":3}}}', "written_at": THEN})],
    "0039": [
        _vectors("f1", state="indexed", model="m" * 300, dimension=2, chunks=2, chunks_done=2),
        _vectors("f6", state="indexing", model="m", dimension=2, chunks=10_000, chunks_done=64),
        _vectors("f3", state="failed", reason="r" * 300),
        _vectors("f2"),
        _segment("f1", '[[0,3,"t\\u00f6a"],[4,9,"water"]]', matrix=struct.pack("<4f", 1, 0, 0.6, 0.8)),
        _segment("f6", '[[0,1,"x"]]', number=2**24),
        ("vector_grants", {"group_id": "photos", "agent_id": "a1", "tenant_id": TENANT, "created_at": THEN}),
    ],
    "0041": [
        ("event_streams", {"tenant_id": TENANT, "first_number": 7, "last_number": 8}),
        _event(7, "agent.changed", subject_kind="agent", subject_id="a1", agent_id="a1", data='{"state":"running"}'),
        _event(8, "file.added", subject_kind="file", subject_id="f" * 100, data='{"name":"t\\u00f6a"}'),
    ],
    "0020": [operation("unordered", "paused", kind="webhooks.deliver", subject="webhook/w2", tenant_id=TENANT)],
}
