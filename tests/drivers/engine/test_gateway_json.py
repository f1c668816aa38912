"""The JSON form of tasks: round trips, and values that an agent wrote."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.drivers.engine import gateway_json
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    EngineTaskRefused,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    TaskChange,
    TaskDelivery,
    TaskPayload,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.gateway_json import parse_device_list

PAST = OneTimeSchedule(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
HOSTILE: list[Any] = [
    *(None, [], "at", 5, {}, {"kind": []}, {"kind": "at"}, {"kind": "at", "at": "soon"}, {"kind": "at", "at": {}}),
    *({"kind": "every", "everyMs": "1"}, {"kind": "every", "everyMs": 1e30}, {"kind": "every", "everyMs": -1}),
    *({"kind": "cron"}, {"kind": "cron", "expr": 5}, {"kind": "at", "at": "9999-12-31T23:59:59-23:59"}),
]


@pytest.mark.parametrize("schedule", [PAST, IntervalSchedule(90_000), CronSchedule("0 9 * * *", "Asia/Tokyo", 5)])
@pytest.mark.parametrize("payload", [TaskPayload("agentTurn", "a", "m", "low", 7), TaskPayload("systemEvent", "b")])
@pytest.mark.parametrize("delivery", [TaskDelivery(), TaskDelivery("announce", "slack", "C1", best_effort=True)])
def test_a_task_survives_a_round_trip(schedule: Schedule, payload: TaskPayload, delivery: TaskDelivery) -> None:
    fields = gateway_json.serialize_task(TaskSpec("n", schedule, payload, delivery=delivery))
    assert gateway_json.parse_schedule(fields["schedule"]) == schedule
    assert gateway_json.parse_payload(fields["payload"]) == payload
    assert gateway_json.parse_delivery(fields["delivery"]) == delivery


def test_a_change_has_only_the_given_fields() -> None:
    assert gateway_json.serialize_task(TaskChange(enabled=False)) == {"enabled": False}
    assert gateway_json.serialize_task(TaskChange()) == {}


@pytest.mark.parametrize("found", HOSTILE, ids=str)
def test_garbage_is_not_a_schedule(found: object) -> None:
    assert gateway_json.parse_schedule(found) is None


def test_garbage_is_ignored_and_long_texts_are_cut() -> None:
    assert gateway_json.parse_payload({"kind": "agentTurn", "message": 5}) is None
    assert gateway_json.parse_payload({"kind": "command", "argv": ["id"]}) is None
    assert gateway_json.parse_delivery({"mode": {}}) == TaskDelivery()
    assert gateway_json.parse_objects({"a": 1}) == []
    assert gateway_json.parse_objects([1, {"a": 1}]) == [{}, {"a": 1}]
    assert len(gateway_json.parse_text("x" * 100_000) or "") == 32_000
    assert gateway_json.parse_text("a\x1b[31mb\x07") == "ab\N{REPLACEMENT CHARACTER}"
    assert [gateway_json.parse_number(found) for found in (True, "1", -1, 1e300, float("nan"), float("inf"), 2)] == [
        None
    ] * 6 + [2]
    assert gateway_json.parse_milliseconds(1e18) is None
    assert gateway_json.parse_milliseconds(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert gateway_json.parse_iso_time("2026-01-02T03:04:05") == PAST.at


def test_an_expired_one_time_task_cannot_be_enabled() -> None:
    gateway_json.check_time_left(PAST, TaskChange(name="x"))
    gateway_json.check_time_left(PAST, TaskChange(enabled=True, schedule=IntervalSchedule(60_000)))
    with pytest.raises(EngineTaskRefused):
        gateway_json.check_time_left(PAST, TaskChange(enabled=True))
    with pytest.raises(EngineTaskRefused):
        gateway_json.check_time_left(IntervalSchedule(60_000), TaskChange(enabled=True, schedule=PAST))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["requestId", "deviceId", "scopes", "ts", "approvedAtMs", "connected", "remoteIp", "isRepair"])


def test_a_list_of_devices_is_parsed() -> None:
    row = {"requestId": "r", "deviceId": "d", "displayName": "Ada's phone", "clientId": "openclaw-ios", "ts": 1500}
    found = parse_device_list(
        {"pending": [{**row, "scopes": ["a"], "isRepair": True}], "paired": [{"deviceId": "e", "connected": False}]}
    )
    (pending,), (paired,) = found.pending, found.paired
    assert (pending.request_id, pending.is_repair) == ("r", True)
    assert pending.requested_at == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert (pending.device.display_name, pending.device.client_id, pending.device.scopes) == (
        "Ada's phone",
        "openclaw-ios",
        ["a"],
    )
    assert (paired.device.device_id, paired.connected, paired.paired_at) == ("e", False, None)


@pytest.mark.parametrize("found", [None, 7, "x", [], [{"pending": []}]])
def test_an_answer_without_a_list_of_devices_is_a_failure(found: object) -> None:
    with pytest.raises(EngineFailed):
        parse_device_list(found)


@given(
    st.fixed_dictionaries(
        {name: ANY | st.lists(st.dictionaries(FIELDS, ANY, max_size=6)) for name in ("pending", "paired")}
    )
)
def test_any_rows_are_parsed(found: dict[str, Any]) -> None:
    read = parse_device_list(found)
    assert all(isinstance(one.request_id, str) and one.request_id for one in read.pending)
    assert all(isinstance(one.device.device_id, str) for one in [*read.pending, *read.paired])


def test_long_lists_and_texts_are_cut() -> None:
    found = parse_device_list(
        {"pending": [{"requestId": "x" * 9999, "scopes": ["s"] * 9999}] * 9999, "paired": [{}] * 9999}
    )
    assert (len(found.pending), len(found.paired)) == (200, 200)
    assert (len(found.pending[0].request_id), len(found.pending[0].device.scopes)) == (200, 200)
