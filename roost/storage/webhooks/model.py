"""A webhook: where a tenant wants to be told of its files; a delivery: one message to one webhook. All rules are pure.

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
"""Of a tenant."""
DESCRIPTION_LIMIT = 500
PAGE_DEFAULT, PAGE_LIMIT = 25, 100
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 - the sign that secrets start with
SECRETS_LIMIT = 3
"""Secrets that sign at once: the newest, and those before it whose time is not over."""
OVERLAP = timedelta(hours=24)
"""How long a secret goes on signing beside the one that took its place."""
KEPT = timedelta(days=7)
"""How long events and what became of them can be seen."""
DELIVER, SEND_TEST = "webhooks.deliver", "webhooks.test"
"""The operations that send one message; a delivery has the id of its operation."""
LIMITS = OperationLimits(total=64, per_tenant=16, per_subject=4)
"""Messages in flight of each of these kinds."""
GIVEN_UP_AFTER = timedelta(days=5)
"""A webhook that takes nothing for so long is disabled."""
TEST = "webhook.test"
EVENTS: Sequence[str] = tuple(f"ipfs.{network}.{change}" for network in ContentNetwork for change in FileEvent)
"""The types of events that a webhook can be told of."""

_PAUSES: Sequence[timedelta] = (
    *(timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14)),
)
"""After the first failure, the second, and so on."""
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
    """Reason for which the server disabled a webhook."""

    GONE = "gone"
    FAILING = "failing"


@dataclass(frozen=True)
class Webhook:
    """`events` empty: all of them. failing_since: the first of the failures that no success came after."""

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
    """`body` is what receivers get, to the byte, at every attempt."""

    id: str
    tenant_id: str
    type: str
    body: str
    created_at: datetime


@dataclass(frozen=True)
class WebhookDelivery:
    """One message to one webhook.

    attempts: how often it was begun. failures: of this round; a redelivery begins at zero.
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
    """A delivery that this process has begun, with its webhook and message. secrets: id and envelope of each."""

    delivery: WebhookDelivery
    webhook: Webhook
    body: str
    secrets: Sequence[tuple[str, bytes]]


@dataclass(frozen=True)
class DeliveryOutcome:
    """How an attempt ended: by a status, or by an error where there was no answer."""

    status: int | None = None
    error: str | None = None

    @property
    def taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True)
class DeliveryVerdict:
    """What an outcome means for the delivery and its webhook. next_at: None where it is over."""

    state: DeliveryState
    next_at: datetime | None = None
    disable: DisabledReason | None = None


def judge_outcome(job: DeliveryJob, outcome: DeliveryOutcome, now: datetime, chance: float) -> DeliveryVerdict:
    """`chance` between 0 and 1 spreads the attempts of those who failed together."""
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
    """Types of events, each once, in the order of EVENTS. Raises InvalidEvents."""
    if not set(given) <= set(EVENTS):
        raise InvalidWebhookEvents(f"events are some of {', '.join(EVENTS)}")
    return tuple(event for event in EVENTS if event in given)


@dataclass(frozen=True)
class WebhookWithNewSecret:
    """A webhook with its newest secret, which is shown this once."""

    webhook: Webhook
    secret: Sensitive[str]
