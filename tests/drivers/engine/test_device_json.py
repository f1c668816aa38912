from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.device_json import parse_device_list

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
