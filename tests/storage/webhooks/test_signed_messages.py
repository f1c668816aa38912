"""Webhook messages as receivers verify them."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileEvent, FileMetadata
from roost.storage.webhooks.model import file_event_body, format_secret, message_headers

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
FILE = File(
    id="f",
    tenant_id="t",
    network=ContentNetwork.PUBLIC,
    cid="bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
    size=11,
    number_of_files=1,
    mime_type="text/plain",
    metadata=FileMetadata("größe 🐦.txt", {"a": 1, "b": "x"}, "g"),
    created_at=AT,
    updated_at=AT,
)
OLD, NEW = Sensitive(bytes(range(32))), Sensitive(bytes(range(64)))


def parse_json(body: str) -> dict[str, Any]:
    return json.loads(body)


def signed(body: bytes, *secrets: Sensitive[bytes], at: datetime | None = None) -> dict[str, str]:
    return dict(message_headers("e1", body, secrets, at or clock.utc_now()))


def verify(secret: Sensitive[bytes], body: bytes, headers: dict[str, str]) -> Any:
    return Webhook(format_secret(secret).reveal()).verify(body, headers)


def test_the_message_of_an_added_file() -> None:
    assert parse_json(file_event_body(FileEvent.ADDED, FILE, None, AT)) == {
        "event_type": "ipfs.public.file_added",
        "timestamp": "2026-01-02T03:04:05.000678Z",
        "workspace_id": "t",
        "data": {
            "object": {
                "id": "f",
                "cid": FILE.cid,
                "name": FILE.metadata.name,
                "size": 11,
                "mime_type": "text/plain",
                "number_of_files": 1,
                "group_id": "g",
                "keyvalues": {"a": 1, "b": "x"},
                "created_at": "2026-01-02T03:04:05.000678Z",
            }
        },
    }


def test_an_update_has_the_previous_values() -> None:
    old = replace(FILE, network=ContentNetwork.PRIVATE)
    new = replace(old, metadata=FileMetadata("new.txt", {"a": 1, "b": "x"}, None))
    body = parse_json(file_event_body(FileEvent.UPDATED, new, old, AT))
    assert body["event_type"] == "ipfs.private.file_updated"
    assert body["data"]["object"]["name"] == "new.txt"
    assert body["data"]["previous_attributes"] == {"name": FILE.metadata.name, "group_id": "g"}


def test_signatures_by_two_secrets() -> None:
    body = file_event_body(FileEvent.DELETED, FILE, None, AT).encode()
    headers = signed(body, NEW, OLD)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (NEW, OLD):
        assert verify(secret, body, headers)["event_type"] == "ipfs.public.file_deleted"
    with pytest.raises(WebhookVerificationError):
        verify(Sensitive(bytes(32)), body, headers)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature", "body"])
def test_a_changed_message_fails_verification(name: str) -> None:
    body, headers = b'{"a":1}', signed(b'{"a":1}', NEW)
    changed = {
        "webhook-id": "e2",
        "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1),
        "webhook-signature": signed(b"{}", NEW)["webhook-signature"],
    }
    with pytest.raises(WebhookVerificationError):
        verify(NEW, b'{"a":2}' if name == "body" else body, headers | {k: v for k, v in changed.items() if k == name})


def test_the_signature_of_the_specification_s_example() -> None:
    secret = Sensitive(base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = message_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', [secret], at)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_receivers_refuse_an_old_message() -> None:
    headers = signed(b"{}", NEW, at=clock.utc_now() - timedelta(minutes=6))
    with pytest.raises(WebhookVerificationError, match="old"):
        verify(NEW, b"{}", headers)


def test_the_format_of_secrets() -> None:
    text = format_secret(NEW).reveal()
    assert text.startswith("whsec_")
    assert "whsec" not in str(format_secret(NEW))
