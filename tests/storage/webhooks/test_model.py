"""Rules of webhooks: the meaning of an attempt's result, and the events."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roost.storage.webhooks.model import (
    EVENT_TYPES,
    MAX_ATTEMPTS,
    DeliveryJob,
    DeliveryOutcome,
    DeliveryState,
    DisabledReason,
    InvalidWebhookEvents,
    Webhook,
    WebhookDelivery,
    judge_outcome,
    normalize_events,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WEBHOOK = Webhook("w", "t", "https://a.example/", "", (), True, None, None, NOW, NOW)
DELIVERY = WebhookDelivery("d", "w", "e", EVENT_TYPES[0], NOW, NOW, DeliveryState.SENDING, 1, attempted_at=NOW)
JOB = DeliveryJob(DELIVERY, WEBHOOK, "{}", ())


def job_after(failures: int, since: timedelta | None = None) -> DeliveryJob:
    webhook = replace(WEBHOOK, failing_since=None if since is None else NOW - since)
    return replace(JOB, delivery=replace(DELIVERY, failures=failures), webhook=webhook)


def test_events_are_normalised_or_refused() -> None:
    assert set(EVENT_TYPES) == {
        *("ipfs.public.file_added", "ipfs.public.file_updated", "ipfs.public.file_deleted"),
        *("ipfs.private.file_added", "ipfs.private.file_updated", "ipfs.private.file_deleted"),
    }
    assert list(normalize_events([EVENT_TYPES[3], EVENT_TYPES[0], EVENT_TYPES[3]])) == [EVENT_TYPES[0], EVENT_TYPES[3]]
    assert list(normalize_events([])) == []
    for invalid in (["ipfs.public"], ["*"], [""], [EVENT_TYPES[0], "webhook.test"]):
        with pytest.raises(InvalidWebhookEvents):
            normalize_events(invalid)


def test_a_webhook_accepts_its_events_while_it_is_enabled() -> None:
    assert all(WEBHOOK.accepts(event) for event in EVENT_TYPES)
    webhook = replace(WEBHOOK, events=(EVENT_TYPES[1],))
    assert [event for event in EVENT_TYPES if webhook.accepts(event)] == [EVENT_TYPES[1]]
    assert not replace(WEBHOOK, enabled=False).accepts(EVENT_TYPES[0])


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_2xx_status_is_a_delivery(status: int) -> None:
    verdict = judge_outcome(job_after(3), DeliveryOutcome(status), NOW, 0.5)
    assert (verdict.state, verdict.next_at, verdict.disable) == (DeliveryState.DELIVERED, None, None)


@pytest.mark.parametrize(
    "outcome",
    [
        DeliveryOutcome(500),
        DeliveryOutcome(302),
        DeliveryOutcome(404),
        DeliveryOutcome(199),
        DeliveryOutcome(error="silence"),
    ],
)
def test_a_delivery_is_retried_for_more_than_a_day(outcome: DeliveryOutcome) -> None:
    delays: list[timedelta] = []
    for failures in range(MAX_ATTEMPTS - 1):
        verdict = judge_outcome(job_after(failures), outcome, NOW, 0.0)
        assert verdict.state is DeliveryState.PENDING
        assert verdict.next_at is not None
        delays.append(verdict.next_at - NOW)
    assert delays[:3] == [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)]
    assert delays == sorted(delays)
    assert timedelta(hours=28) < sum(delays, timedelta(0)) < timedelta(hours=36)
    assert judge_outcome(job_after(MAX_ATTEMPTS - 1), outcome, NOW, 0.0).state is DeliveryState.FAILED


def test_jitter_spreads_retries() -> None:
    first, last = (judge_outcome(job_after(1), DeliveryOutcome(500), NOW, jitter).next_at for jitter in (0.0, 1.0))
    assert (first, last) == (NOW + timedelta(minutes=5), NOW + timedelta(minutes=6))


def test_status_410_disables_a_webhook_at_once() -> None:
    verdict = judge_outcome(job_after(0), DeliveryOutcome(410), NOW, 0.0)
    assert (verdict.state, verdict.next_at, verdict.disable) == (DeliveryState.FAILED, None, DisabledReason.GONE)


@pytest.mark.parametrize(
    ("failures", "since", "disable"),
    [
        (MAX_ATTEMPTS - 1, timedelta(days=5), DisabledReason.FAILING),
        (MAX_ATTEMPTS - 1, timedelta(days=4, hours=23), None),
        (MAX_ATTEMPTS - 1, None, None),
        (0, timedelta(days=30), None),  # it may have recovered: the next attempts decide
    ],
)
def test_days_of_failures_disable_a_webhook(
    failures: int, since: timedelta | None, disable: DisabledReason | None
) -> None:
    assert judge_outcome(job_after(failures, since), DeliveryOutcome(503), NOW, 0.0).disable == disable
