"""Rules of webhooks, which receive events of files, and of deliveries of one message to one webhook. Pure.

Messages are delivered at least once and in no particular order (Standard Webhooks 1.0).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from roost.core.sensitive import Sensitive
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import FileEvent
from roost.storage.webhooks.errors import InvalidWebhookEvents
from roost.work import OperationLimits

WEBHOOK_LIMIT = 20
"""Maximum webhooks of a tenant."""
DESCRIPTION_LIMIT = 500
PAGE_DEFAULT, PAGE_LIMIT = 25, 100
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of secrets
SECRETS_LIMIT = 3
"""Maximum secrets that sign: the newest, and older ones that have not expired."""
OVERLAP = timedelta(hours=24)
"""How long a replaced secret also signs."""
KEPT = timedelta(days=7)
"""How long events and their deliveries are kept."""
DELIVER, SEND_TEST = "webhooks.deliver", "webhooks.test"
"""Kinds of operations that send one message; a delivery has the id of its operation."""
LIMITS = OperationLimits(total=64, per_tenant=16, per_subject=4)
"""Concurrent messages of each kind."""
GIVEN_UP_AFTER = timedelta(days=5)
"""A webhook is disabled after this time without a success."""
TEST = "webhook.test"
EVENTS: Sequence[str] = tuple(f"ipfs.{network}.{change}" for network in ContentNetwork for change in FileEvent)
"""The types of events."""

_PAUSES: Sequence[timedelta] = (
    *(timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14)),
)
"""Pauses after the first failure, the second, and so on."""
_JITTER = 0.2
ATTEMPTS = len(_PAUSES) + 1
_GONE = 410


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
    """`events` is empty for all types. failing_since: the first failure since the last success."""

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

    def wants(self, event_type: str) -> bool:
        return self.enabled and (not self.events or event_type in self.events)


@dataclass(frozen=True)
class WebhookEvent:
    """An event; every attempt sends exactly `body`."""

    id: str
    tenant_id: str
    type: str
    body: str
    created_at: datetime


@dataclass(frozen=True)
class WebhookDelivery:
    """One message to one webhook.

    attempts: number of attempts. failures: since the last redelivery.
    status, error: the result of the last attempt. next_at: time of the next attempt.
    """

    id: str
    webhook_id: str
    event_id: str
    event_type: str
    state: DeliveryState
    attempts: int
    failures: int
    status: int | None
    error: str | None
    created_at: datetime
    attempted_at: datetime | None
    next_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class DeliveryJob:
    """A delivery that this process has begun, with its webhook and message. secrets: their ids and envelopes."""

    delivery: WebhookDelivery
    webhook: Webhook
    body: str
    secrets: Sequence[tuple[str, bytes]]


@dataclass(frozen=True)
class DeliveryOutcome:
    """Result of an attempt: a status, or an error without a response."""

    status: int | None = None
    error: str | None = None

    @property
    def taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True)
class DeliveryVerdict:
    """Consequence of an outcome for the delivery and its webhook. next_at: None for no further attempt."""

    state: DeliveryState
    next_at: datetime | None = None
    disable: DisabledReason | None = None


def judge_outcome(job: DeliveryJob, outcome: DeliveryOutcome, now: datetime, chance: float) -> DeliveryVerdict:
    """`chance` between 0 and 1 spreads the attempts of deliveries that failed together."""
    if outcome.taken:
        return DeliveryVerdict(DeliveryState.DELIVERED)
    if outcome.status == _GONE:
        return DeliveryVerdict(DeliveryState.FAILED, disable=DisabledReason.GONE)
    failures = job.delivery.failures
    if failures < len(_PAUSES):
        return DeliveryVerdict(DeliveryState.PENDING, now + _PAUSES[failures] * (1 + _JITTER * chance))
    since = job.webhook.failing_since
    too_long = since is not None and now - since >= GIVEN_UP_AFTER
    return DeliveryVerdict(DeliveryState.FAILED, disable=DisabledReason.FAILING if too_long else None)


def checked_events(given: Sequence[str]) -> Sequence[str]:
    """Deduplicate event types and sort them as in EVENTS. Raises InvalidWebhookEvents."""
    if not set(given) <= set(EVENTS):
        raise InvalidWebhookEvents(f"events are some of {', '.join(EVENTS)}")
    return tuple(event for event in EVENTS if event in given)


@dataclass(frozen=True)
class WebhookWithNewSecret:
    """A webhook with its newest secret, shown only once."""

    webhook: Webhook
    secret: Sensitive[str]
