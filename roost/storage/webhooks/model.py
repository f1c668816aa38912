"""Rules of webhooks, which receive the events of files, and of deliveries of one message to one webhook. Pure.

Messages are delivered at least once and in no particular order (Standard Webhooks 1.0).
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from standardwebhooks import Webhook as WebhookSigner

from roost.core import clock
from roost.core.problem import AccessDenied, InvalidInput, NotFound, TooManyRequests
from roost.core.sensitive import Sensitive
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileEvent
from roost.work import OperationLimits


class WebhookNotFound(NotFound):
    """The webhook does not exist or belongs to another tenant; the response does not say which."""

    message = "Webhook not found"


class DeliveryNotFound(NotFound):
    message = "Delivery not found"


class WebhookLimitReached(AccessDenied):
    message = "Webhook limit reached"


class InvalidWebhookEvents(InvalidInput):
    message = "events must be event types"
    field = "events"


class EmptyWebhookUpdate(InvalidInput):
    message = "url, events, description or enabled is required"


class WebhookQueueFull(TooManyRequests):
    message = "Too many deliveries to this webhook at once"


WEBHOOK_LIMIT = 20
"""Maximum number of webhooks of a tenant."""
DESCRIPTION_LIMIT = 500
PAGE_DEFAULT, PAGE_LIMIT = 25, 100
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of secrets
SECRETS_LIMIT = 3
"""Maximum number of signing secrets of a webhook: the newest, and older ones that have not expired."""
SECRET_OVERLAP = timedelta(hours=24)
"""Time after a rotation in which the replaced secret still signs messages."""
RETENTION = timedelta(days=7)
"""Age at which events and their deliveries are deleted."""
DELIVER, SEND_TEST = "webhooks.deliver", "webhooks.test"
"""Kinds of operations that send one message. A delivery has the id of its operation."""
SENDING_LIMITS = OperationLimits(total=64, per_tenant=16, per_subject=4)
"""Maximum concurrent messages of each kind."""
DISABLE_AFTER = timedelta(days=5)
"""A webhook is disabled if the last attempt at a delivery fails and none has succeeded for this long."""
TEST_EVENT = "webhook.test"
EVENT_TYPES: Sequence[str] = tuple(f"ipfs.{network}.{change}" for network in ContentNetwork for change in FileEvent)

JSON = Any

_RETRY_DELAYS: Sequence[timedelta] = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14)),
)
"""Delays after the first failure, the second, and so on."""
_JITTER = 0.2
"""Maximum share that is added to a delay, so that deliveries that failed together are not retried together."""
MAX_ATTEMPTS = len(_RETRY_DELAYS) + 1


def operation_subject(webhook_id: str) -> str:
    """Return the subject of the operations that send to a webhook."""
    return f"webhook/{webhook_id}"


class DeliveryState(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DisabledReason(StrEnum):
    """Reason why the server disabled a webhook."""

    GONE = "gone"
    FAILING = "failing"


@dataclass(frozen=True)
class Webhook:
    """URL that receives events.

    events: the types that it receives, empty for all. failing_since: time of the first failure after the last success.
    """

    id: str
    tenant_id: str
    url: str
    description: str
    events: Sequence[str]
    enabled: bool
    disabled_reason: DisabledReason | None
    failing_since: datetime | None
    created_at: datetime
    updated_at: datetime

    def accepts(self, event_type: str) -> bool:
        return self.enabled and (not self.events or event_type in self.events)


@dataclass(frozen=True)
class WebhookEvent:
    """Event of a file, with the exact body that every attempt sends."""

    id: str
    tenant_id: str
    type: str
    body: str
    created_at: datetime


@dataclass(frozen=True)
class WebhookDelivery:
    """One message to one webhook.

    failures: failed attempts since the last redelivery. status, error: result of the last attempt.
    next_at: time of the next attempt.
    """

    id: str
    webhook_id: str
    event_id: str
    event_type: str
    created_at: datetime
    next_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: int = 0
    failures: int = 0
    status: int | None = None
    error: str | None = None
    attempted_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class DeliveryJob:
    """Delivery whose attempt has begun, with its webhook and message. secrets: pairs of an id and an envelope."""

    delivery: WebhookDelivery
    webhook: Webhook
    body: str
    secrets: Sequence[tuple[str, bytes]]


@dataclass(frozen=True)
class DeliveryOutcome:
    """Result of an attempt: the status of a response, or an error if there was none."""

    status: int | None = None
    error: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True)
class DeliveryVerdict:
    """New state of a delivery and its webhook after an attempt. next_at: None for no further attempt."""

    state: DeliveryState
    next_at: datetime | None = None
    disable: DisabledReason | None = None


def judge_outcome(job: DeliveryJob, outcome: DeliveryOutcome, now: datetime, jitter: float) -> DeliveryVerdict:
    """Decide how a delivery continues after an attempt; `jitter` is a random number between 0 and 1."""
    if outcome.succeeded:
        return DeliveryVerdict(DeliveryState.DELIVERED)
    if outcome.status == HTTPStatus.GONE:  # the receiver wants no further messages (Standard Webhooks 1.0)
        return DeliveryVerdict(DeliveryState.FAILED, disable=DisabledReason.GONE)
    failures = job.delivery.failures
    if failures < len(_RETRY_DELAYS):
        return DeliveryVerdict(DeliveryState.PENDING, now + _RETRY_DELAYS[failures] * (1 + _JITTER * jitter))
    failing_since = job.webhook.failing_since
    is_expired = failing_since is not None and now - failing_since >= DISABLE_AFTER
    return DeliveryVerdict(DeliveryState.FAILED, disable=DisabledReason.FAILING if is_expired else None)


def normalize_events(names: Sequence[str]) -> Sequence[str]:
    """Deduplicate event types and sort them as in EVENT_TYPES. Raises InvalidWebhookEvents."""
    if not set(names) <= set(EVENT_TYPES):
        raise InvalidWebhookEvents(f"events must be some of {', '.join(EVENT_TYPES)}")
    return tuple(event for event in EVENT_TYPES if event in names)


def event_type(change: FileEvent, file: File) -> str:
    return f"ipfs.{file.network}.{change}"


def file_event_body(change: FileEvent, file: File, previous: File | None, at: datetime) -> str:
    """Return the body of a message about a file, with the previous values of attributes that an update changed."""
    attributes = _attributes(file)
    data: dict[str, JSON] = {"object": attributes}
    if previous is not None:
        changed = {name: value for name, value in _attributes(previous).items() if value != attributes[name]}
        data["previous_attributes"] = changed
    return _body(event_type(change, file), file.tenant_id, data, at)


def test_event_body(tenant_id: str, webhook_id: str, at: datetime) -> str:
    return _body(TEST_EVENT, tenant_id, {"object": {"id": webhook_id}}, at)


def message_headers(event_id: str, body: bytes, secrets: Sequence[Sensitive[bytes]], at: datetime) -> Mapping[str, str]:
    """Return the headers of a message sent at a time, with one symmetric signature per secret."""
    signatures = [WebhookSigner(secret.reveal()).sign(event_id, at, body.decode()) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def format_secret(secret: Sensitive[bytes]) -> Sensitive[str]:
    """Format a secret as its owner receives it."""
    return Sensitive(SECRET_PREFIX + base64.b64encode(secret.reveal()).decode())


def _body(kind: str, tenant_id: str, data: JSON, at: datetime) -> str:
    message = {"event_type": kind, "timestamp": clock.format_iso(at), "workspace_id": tenant_id, "data": data}
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def _attributes(file: File) -> dict[str, JSON]:
    return {
        "id": file.id,
        "cid": file.cid,
        "name": file.metadata.name,
        "size": file.size,
        "mime_type": file.mime_type,
        "number_of_files": file.number_of_files,
        "group_id": file.metadata.group_id,
        "keyvalues": dict(file.metadata.keyvalues),
        "created_at": clock.format_iso(file.created_at),
    }
