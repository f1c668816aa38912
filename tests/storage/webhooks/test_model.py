"""Rules of webhooks: the meaning of an attempt's result, and the events."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roost.storage.webhooks.errors import InvalidWebhookEvents
from roost.storage.webhooks.model import (
    ATTEMPTS,
    EVENTS,
    DeliveryJob,
    DeliveryOutcome,
    DeliveryState,
    DisabledReason,
    Webhook,
    WebhookDelivery,
    checked_events,
    judge_outcome,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WEBHOOK = Webhook("w", "t", "https://a.example/", "", (), True, None, None, NOW, NOW)
DELIVERY = WebhookDelivery("d", "w", "e", EVENTS[0], DeliveryState.SENDING, 1, 0, None, None, NOW, NOW, NOW, None)
JOB = DeliveryJob(DELIVERY, WEBHOOK, "{}", ())


def after(failures: int, since: timedelta | None = None) -> DeliveryJob:
    webhook = replace(WEBHOOK, failing_since=None if since is None else NOW - since)
    return replace(JOB, delivery=replace(DELIVERY, failures=failures), webhook=webhook)


def test_events() -> None:
    assert set(EVENTS) == {
        *("ipfs.public.file_added", "ipfs.public.file_updated", "ipfs.public.file_deleted"),
        *("ipfs.private.file_added", "ipfs.private.file_updated", "ipfs.private.file_deleted"),
    }
    assert list(checked_events([EVENTS[3], EVENTS[0], EVENTS[3]])) == [EVENTS[0], EVENTS[3]]
    assert list(checked_events([])) == []
    for wrong in (["ipfs.public"], ["*"], [""], [EVENTS[0], "webhook.test"]):
        with pytest.raises(InvalidWebhookEvents):
            checked_events(wrong)


def test_who_wants_what() -> None:
    assert all(WEBHOOK.wants(event) for event in EVENTS)
    one = replace(WEBHOOK, events=(EVENTS[1],))
    assert [event for event in EVENTS if one.wants(event)] == [EVENTS[1]]
    assert not replace(WEBHOOK, enabled=False).wants(EVENTS[0])


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_taken(status: int) -> None:
    verdict = judge_outcome(after(3), DeliveryOutcome(status), NOW, 0.5)
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
def test_it_is_tried_for_more_than_a_day(outcome: DeliveryOutcome) -> None:
    pauses: list[timedelta] = []
    for failures in range(ATTEMPTS - 1):
        verdict = judge_outcome(after(failures), outcome, NOW, 0.0)
        assert verdict.state is DeliveryState.PENDING
        assert verdict.next_at is not None
        pauses.append(verdict.next_at - NOW)
    assert pauses[:3] == [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)]
    assert pauses == sorted(pauses)
    assert timedelta(hours=28) < sum(pauses, timedelta(0)) < timedelta(hours=36)
    assert judge_outcome(after(ATTEMPTS - 1), outcome, NOW, 0.0).state is DeliveryState.FAILED


def test_those_that_failed_together_are_spread() -> None:
    first, last = (judge_outcome(after(1), DeliveryOutcome(500), NOW, chance).next_at for chance in (0.0, 1.0))
    assert (first, last) == (NOW + timedelta(minutes=5), NOW + timedelta(minutes=6))


def test_one_that_is_gone_is_disabled_at_once() -> None:
    verdict = judge_outcome(after(0), DeliveryOutcome(410), NOW, 0.0)
    assert (verdict.state, verdict.next_at, verdict.disable) == (DeliveryState.FAILED, None, DisabledReason.GONE)


@pytest.mark.parametrize(
    ("failures", "since", "disable"),
    [
        (ATTEMPTS - 1, timedelta(days=5), DisabledReason.FAILING),
        (ATTEMPTS - 1, timedelta(days=4, hours=23), None),
        (ATTEMPTS - 1, None, None),
        (0, timedelta(days=30), None),  # it may have recovered; only the next attempts show
    ],
)
def test_one_that_fails_for_days_is_disabled(
    failures: int, since: timedelta | None, disable: DisabledReason | None
) -> None:
    assert judge_outcome(after(failures, since), DeliveryOutcome(503), NOW, 0.0).disable == disable
