"""Pins by CID: requests, filters and how they are answered."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.files.model import InvalidFileMetadata
from roost.storage.pins import schemas
from roost.storage.pins.model import QUEUED, Pin, PinQuery, PinRequest, PinState

V0 = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
V1 = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
HOST = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
PIN = Pin("p", "t", PinRequest(V0, "n", {"a": 1}, "g", [HOST]), PinState.SEARCHING, None, NOW, NOW)


def by_cid(**body: Any) -> PinRequest:
    return schemas.PinByCidRequest.model_validate({"cid": V1, **body}).to_pin_request()


def test_a_cid_is_enough() -> None:
    assert by_cid() == PinRequest(V1)


def test_all_that_may_be_said() -> None:
    wanted = PinRequest(V1, "n", {"a": 1, "b": "x"}, "g", [HOST])
    keyvalues = {"a": 1, "b": "x", "c": None}
    assert by_cid(name="n", keyvalues=keyvalues, group_id="g", host_nodes=[HOST]) == wanted


def test_empty_fields_count_as_unsent() -> None:
    assert by_cid(name="", keyvalues={}, group_id="", host_nodes=[]) == PinRequest(V1)
    assert by_cid(name=None, keyvalues=None, group_id=None, host_nodes=None) == PinRequest(V1)


@pytest.mark.parametrize(("cid", "canonical"), [(V0, V0), (V1, V1), (V1.upper(), V1)])
def test_a_cid_stays_of_its_version(cid: str, canonical: str) -> None:
    assert by_cid(cid=cid).cid == canonical


@pytest.mark.parametrize("cid", ["", "x", f"/ipfs/{V0}", f"ipfs://{V1}", f" {V0}", V0 + "a", "Qm" * 300])
def test_malformed_cids_are_refused(cid: str) -> None:
    with pytest.raises(InvalidCid):
        by_cid(cid=cid)


@pytest.mark.parametrize(
    "body",
    [
        {"cid": None},
        {"cid": 7},
        {"name": "n" * 256},
        {"name": "a\0"},
        {"name": ["n"]},
        {"keyvalues": []},
        {"keyvalues": "{}"},
        {"group_id": "g\0"},
        {"host_nodes": "one"},
        {"host_nodes": [HOST] * 21},
        {"host_nodes": ["/" * 513]},
        {"host_nodes": ["\ud800"]},
    ],
)
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        by_cid(**body)


@pytest.mark.parametrize("keyvalues", [{"a": {}}, {"a": []}, {"": 1}, {"a\0": 1}, dict.fromkeys("abcdefghijk", 1)])
def test_keyvalues_that_are_refused(keyvalues: dict[str, Any]) -> None:
    with pytest.raises(InvalidFileMetadata):
        by_cid(keyvalues=keyvalues)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, PinQuery()),
        ({"cid": ""}, PinQuery()),
        ({"cid": V0}, PinQuery(cid=[V1, V0])),
        ({"cid": V1}, PinQuery(cid=[V1, V0])),
        ({"status": "searching"}, PinQuery([PinState.SEARCHING])),
        ({"status": "retrieving"}, PinQuery([PinState.RETRIEVING])),
        ({"sort": "ASC"}, PinQuery(ascending=True)),
        ({"sort": "asc"}, PinQuery(ascending=True)),
        ({"sort": "DSC"}, PinQuery()),
    ],
)
def test_job_queries_become_filters(query: dict[str, str], wanted: PinQuery) -> None:
    assert schemas.PinJobParameters.model_validate(query).to_pin_query() == wanted


@pytest.mark.parametrize(
    "query",
    [
        *({"status": status} for status in ("pinned", "", "Searching", "nonsense")),
        *({"limit": limit} for limit in ("0", "251", "-1", "x")),
        *({"sort": "up"}, {"pageToken": "x" * 201}),
    ],
)
def test_lists_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        schemas.PinJobParameters.model_validate(query)


def test_a_cid_that_is_none_is_told() -> None:
    with pytest.raises(InvalidCid):
        schemas.PinJobParameters(cid="x").to_pin_query()


def test_every_status_in_the_queue_can_be_asked_for() -> None:
    asked = [schemas.PinJobParameters.model_validate({"status": status.value}) for status in QUEUED]
    assert [one.to_pin_query().statuses for one in asked] == [[one] for one in QUEUED]


def test_how_a_job_is_told() -> None:
    assert schemas.pin_job_record(PIN).model_dump(mode="json") == {
        "id": "p",
        "cid": V0,
        "name": "n",
        "status": "searching",
        "keyvalues": {"a": 1},
        "host_nodes": [HOST],
        "group_id": "g",
        "date_queued": "2026-11-21T10:29:47.355000Z",
    }


def test_unsent_fields_are_null() -> None:
    told = schemas.pin_job_record(replace(PIN, request=PinRequest(V0))).model_dump()
    assert [told[name] for name in ("name", "keyvalues", "host_nodes", "group_id")] == [None] * 4
