"""The Pinning Service API: parameters, and the names of our states."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.storage.compat.psa import api
from roost.storage.compat.psa.api import InvalidPinQuery
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.files.model import InvalidFileMetadata
from roost.storage.pins.model import FAILED, NameMatch, Pin, PinQuery, PinRequest
from roost.storage.pins.model import PinState as Progress

V0 = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
V1 = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
RAW = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
ORIGIN = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
PIN = Pin("p", "t", PinRequest(V0, "n", hosts=[ORIGIN], meta={"a": "1"}), Progress.SEARCHING, None, NOW, NOW)


def pin_request(**body: Any) -> PinRequest:
    return api.PinObject.model_validate({"cid": V1, **body}).to_pin_request()


def wanted(**query: str) -> PinQuery:
    return api.PinListQuery.model_validate(query).to_query()


def test_valid_requests_are_parsed() -> None:
    assert pin_request() == PinRequest(V1)
    asked = pin_request(name="n", origins=[ORIGIN], meta={"a": "1", "b": ""})
    assert asked == PinRequest(V1, "n", hosts=[ORIGIN], meta={"a": "1", "b": ""})
    assert pin_request(cid=V0).cid == V0
    assert pin_request(name="").name is None


@pytest.mark.parametrize(
    "body",
    [
        *({"cid": None}, {"name": "n" * 256}, {"name": "a\0"}, {"origins": ORIGIN}, {"origins": [ORIGIN] * 21}),
        *({"origins": ["/" * 513]}, {"meta": []}, {"meta": {"a": 1}}, {"meta": {"a": None}}, {"meta": {"a": "\0"}}),
        *({"meta": {"\ud800": "a"}}, {"meta": {str(place): "" for place in range(1001)}}),
    ],
)
def test_malformed_requests_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        pin_request(**body)


def test_malformed_cid_is_refused() -> None:
    with pytest.raises(InvalidCid):
        pin_request(cid="nonsense")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, PinQuery([Progress.PINNED])),
        ({"status": "pinning"}, PinQuery([Progress.RETRIEVING])),
        ({"status": "queued"}, PinQuery([Progress.PRECHECKING, Progress.SEARCHING, Progress.BACKFILLED])),
        ({"status": "failed"}, PinQuery(list(FAILED))),
        ({"status": "pinned,pinning"}, PinQuery([Progress.PINNED, Progress.RETRIEVING])),
        ({"cid": V0}, PinQuery([Progress.PINNED], [V1, V0])),
        ({"cid": f"{RAW},{V1}"}, PinQuery([Progress.PINNED], [RAW, V1, V0])),
        ({"cid": ""}, PinQuery([Progress.PINNED])),
        ({"name": "n"}, PinQuery([Progress.PINNED], name="n")),
        ({"name": "N", "match": "ipartial"}, PinQuery([Progress.PINNED], name="N", match=NameMatch.IPARTIAL)),
        ({"meta": '{"a":"1"}'}, PinQuery([Progress.PINNED], meta={"a": "1"})),
        ({"meta": ""}, PinQuery([Progress.PINNED])),
        ({"before": "2026-11-21T10:29:47.355Z"}, PinQuery([Progress.PINNED], before=NOW)),
        ({"after": "2026-11-21T11:29:47.355+01:00"}, PinQuery([Progress.PINNED], after=NOW)),
        ({"after": "2026-11-21T10:29:47.355"}, PinQuery([Progress.PINNED], after=NOW)),
    ],
)
def test_queries_become_filters(query: dict[str, str], found: PinQuery) -> None:
    assert wanted(**query) == found


@pytest.mark.parametrize(
    "query",
    [
        *({"status": status} for status in ("", "Pinned", "pinned,", "pinned,nonsense", "pinned pinning", "searching")),
        *({"meta": meta} for meta in ("{", "[]", "1", '{"a":1}', '{"a":null}', '{"a":{}}', "[" * 5000)),
        {"meta": "{" + ",".join(f'"{place}":""' for place in range(1001)) + "}"},
        {"cid": ",".join([V1] * 11)},
    ],
)
def test_queries_in_words_that_it_does_not_know(query: dict[str, str]) -> None:
    with pytest.raises(InvalidPinQuery):
        wanted(**query)


@pytest.mark.parametrize("cid", ["x", f"{V1},", f"{V1}, {V0}", ","])
def test_cids_that_are_none(cid: str) -> None:
    with pytest.raises(InvalidCid):
        wanted(cid=cid)


@pytest.mark.parametrize(
    "query",
    [
        *({"limit": limit} for limit in ("0", "1001", "-1", "x", "")),
        *({"match": "regex"}, {"before": "yesterday"}, {"after": ""}, {"name": "n" * 256}, {"name": "a\0"}),
    ],
)
def test_queries_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        wanted(**query)


@pytest.mark.parametrize(
    ("progress", "status", "info"),
    [
        (Progress.PRECHECKING, "queued", {}),
        (Progress.SEARCHING, "queued", {}),
        (Progress.BACKFILLED, "queued", {}),
        (Progress.RETRIEVING, "pinning", {}),
        (Progress.PINNED, "pinned", {}),
        *((one, "failed", {"status_details": one.value}) for one in FAILED),
    ],
)
def test_every_status_has_a_word(progress: Progress, status: str, info: dict[str, str]) -> None:
    told = api.pin_status(replace(PIN, status=progress), [])
    assert (told.status, told.info) == (status, info)


def test_every_status_is_tried_above() -> None:
    others = (Progress.PRECHECKING, Progress.SEARCHING, Progress.BACKFILLED, Progress.RETRIEVING, Progress.PINNED)
    assert {*others, *FAILED} == set(Progress)


def test_how_pins_are_told() -> None:
    assert api.PinResults(count=7, results=[api.pin_status(PIN, [ORIGIN])]).model_dump(mode="json") == {
        "count": 7,
        "results": [
            {
                "requestid": "p",
                "status": "queued",
                "created": "2026-11-21T10:29:47.355000Z",
                "pin": {"cid": V0, "name": "n", "origins": [ORIGIN], "meta": {"a": "1"}},
                "delegates": [ORIGIN],
                "info": {},
            }
        ],
    }


@pytest.mark.parametrize("name", ["n" * 256, "a\0"])
def test_names_are_checked_where_no_shape_is(name: str) -> None:
    asked = api.PinObject.model_construct(cid=V1, name=name, origins=(), meta={})
    with pytest.raises(InvalidFileMetadata):
        asked.to_pin_request()
