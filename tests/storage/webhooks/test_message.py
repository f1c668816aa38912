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
from roost.storage.webhooks import message

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


def read(body: str) -> dict[str, Any]:
    return json.loads(body)


def signed(body: bytes, *secrets: Sensitive[bytes], at: datetime | None = None) -> dict[str, str]:
    return dict(message.message_headers("e1", body, secrets, at or clock.utc_now()))


def verify(secret: Sensitive[bytes], body: bytes, headers: dict[str, str]) -> Any:
    return Webhook(message.format_secret(secret).reveal()).verify(body, headers)


def test_a_file_that_came() -> None:
    assert read(message.of_file(FileEvent.ADDED, FILE, None, AT)) == {
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


def test_an_update_tells_what_was_otherwise() -> None:
    changed = replace(FILE, network=ContentNetwork.PRIVATE, metadata=FileMetadata("new.txt", {"a": 1, "b": "x"}, None))
    told = read(message.of_file(FileEvent.UPDATED, changed, replace(FILE, network=ContentNetwork.PRIVATE), AT))
    assert told["event_type"] == "ipfs.private.file_updated"
    assert told["data"]["object"]["name"] == "new.txt"
    assert told["data"]["previous_attributes"] == {"name": FILE.metadata.name, "group_id": "g"}


def test_signatures_by_two_secrets() -> None:
    body = message.of_file(FileEvent.DELETED, FILE, None, AT).encode()
    headers = signed(body, NEW, OLD)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (NEW, OLD):
        assert verify(secret, body, headers)["event_type"] == "ipfs.public.file_deleted"
    with pytest.raises(WebhookVerificationError):
        verify(Sensitive(bytes(32)), body, headers)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature", "body"])
def test_what_was_changed_on_the_way_is_noticed(name: str) -> None:
    body, headers = b'{"a":1}', signed(b'{"a":1}', NEW)
    other = {
        "webhook-id": "e2",
        "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1),
        "webhook-signature": signed(b"{}", NEW)["webhook-signature"],
    }
    with pytest.raises(WebhookVerificationError):
        verify(NEW, b'{"a":2}' if name == "body" else body, headers | {k: v for k, v in other.items() if k == name})


def test_the_signature_of_the_specification_s_example() -> None:
    secret = Sensitive(base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = message.message_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', [secret], at)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_old_message_is_not_taken() -> None:
    headers = signed(b"{}", NEW, at=clock.utc_now() - timedelta(minutes=6))
    with pytest.raises(WebhookVerificationError, match="old"):
        verify(NEW, b"{}", headers)


def test_the_form_of_secrets() -> None:
    written = message.format_secret(NEW).reveal()
    assert written.startswith("whsec_")
    assert "whsec" not in str(message.format_secret(NEW))
