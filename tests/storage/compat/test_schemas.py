"""Shapes of the older API."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.core.problem import Problem
from roost.storage.compat import schemas
from roost.storage.compat.service import InvalidLegacyRequest
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.content.unixfs.profile import V0, V1
from roost.storage.files.groups.model import Group
from roost.storage.files.model import File, FileMetadata, InvalidFileMetadata, KeyvalueCondition, PinFilter
from roost.storage.files.uploads.model import UploadMetadata
from roost.storage.pins.model import Pin, PinQuery, PinRequest, PinState

OLD = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
NEW = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
DAY = datetime(2026, 11, 21, tzinfo=UTC)
HOST = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
PIN = Pin("p", "t", PinRequest(OLD, "n", {"a": 1}, "g", [HOST]), PinState.SEARCHING, None, NOW, NOW)
GROUP = Group("g", "t", ContentNetwork.PUBLIC, "n", True, NOW, NOW)
FILE = File("i", "t", ContentNetwork.PUBLIC, OLD, 5, 1, "text/plain", FileMetadata("n", {"a": 1}, "g"), NOW, NOW)


@pytest.mark.parametrize("given", [None, "", {}, "{}"])
def test_nothing_said_is_public_all_the_same(given: object) -> None:
    assert schemas.upload_metadata(given, given) == UploadMetadata(ContentNetwork.PUBLIC)


@pytest.mark.parametrize("as_text", [True, False])
def test_all_that_may_be_said(as_text: bool) -> None:
    metadata = {"name": "n", "keyvalues": {"a": 1, "b": None}, "unknown": []}
    options = {"cidVersion": 0, "groupId": "g", "wrapWithDirectory": True, "customPinPolicy": {"regions": []}}
    given = (json.dumps(metadata), json.dumps(options)) if as_text else (metadata, options)
    assert schemas.upload_metadata(*given) == UploadMetadata(
        ContentNetwork.PUBLIC, FileMetadata("n", {"a": 1}, "g"), V0, wrap=True
    )


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"cidVersion": 1}, UploadMetadata(ContentNetwork.PUBLIC, profile=V1)),
        ({"cidVersion": "1"}, UploadMetadata(ContentNetwork.PUBLIC, profile=V1)),
        ({"cidVersion": None}, UploadMetadata(ContentNetwork.PUBLIC)),
        ({"wrapWithDirectory": "true"}, UploadMetadata(ContentNetwork.PUBLIC, wrap=True)),
        ({"wrapWithDirectory": "false"}, UploadMetadata(ContentNetwork.PUBLIC)),
        ({"wrapWithDirectory": False}, UploadMetadata(ContentNetwork.PUBLIC)),
        ({"wrapWithDirectory": []}, UploadMetadata(ContentNetwork.PUBLIC)),
        ({"wrapWithDirectory": {"a": 1}}, UploadMetadata(ContentNetwork.PUBLIC)),
        ({"groupId": ""}, UploadMetadata(ContentNetwork.PUBLIC)),
        ({"groupId": None}, UploadMetadata(ContentNetwork.PUBLIC)),
    ],
)
def test_options_become_upload_metadata(options: dict[str, Any], label: UploadMetadata) -> None:
    assert schemas.upload_metadata(None, options) == label


@pytest.mark.parametrize(("given", "name"), [(7, "7"), (None, None), ("", None), ("\u6f22", "\u6f22"), (True, "True")])
def test_names_are_texts(given: object, name: str | None) -> None:
    assert schemas.upload_metadata({"name": given}, None).file_metadata.name == name


@pytest.mark.parametrize(
    ("metadata", "options"),
    [
        *((text, None) for text in ("{", "[]", "1", '"a"', "null", '{"a": NaN}', [1], 7, True)),
        *(({"name": name}, None) for name in ("n" * 256, "a\0", "\ud800")),
        *(({"keyvalues": pairs}, None) for pairs in ([1], "x", {"a": {}}, {"": 1}, {"a": "\0"}, {"a": "x" * 1025})),
        *((None, {"cidVersion": version}) for version in (2, "x", {}, [], True)),
        *((None, {"groupId": group}) for group in ("a\0", "\ud800")),
        (None, "{"),
    ],
)
def test_labels_that_are_refused(metadata: object, options: object) -> None:
    with pytest.raises(Problem):
        schemas.upload_metadata(metadata, options)


def condition(**wanted: object) -> KeyvalueCondition:
    (found,) = schemas.parse_conditions(json.dumps({"k": wanted}))
    return found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"value": "v"}, KeyvalueCondition("k", "eq", "v")),
        ({"value": "v", "op": "eq"}, KeyvalueCondition("k", "eq", "v")),
        ({"value": "v", "op": None}, KeyvalueCondition("k", "eq", "v")),
        ({"value": "v", "op": "ne"}, KeyvalueCondition("k", "eq", "v", negated=True)),
        ({"value": "%v", "op": "like"}, KeyvalueCondition("k", "like", "%v")),
        ({"value": "%v", "op": "notLike"}, KeyvalueCondition("k", "like", "%v", negated=True)),
        ({"value": "%v", "op": "iLike"}, KeyvalueCondition("k", "ilike", "%v")),
        ({"value": "%v", "op": "notILike"}, KeyvalueCondition("k", "ilike", "%v", negated=True)),
        ({"value": 5, "op": "eq"}, KeyvalueCondition("k", "eq", "5")),
        ({"value": True}, KeyvalueCondition("k", "eq", "true")),
        ({"value": 5, "op": "gt"}, KeyvalueCondition("k", "gt", 5.0, 5.0)),
        ({"value": "5", "op": "lte"}, KeyvalueCondition("k", "lte", "5", "5")),
        ({"value": 1, "secondValue": 2.5, "op": "between"}, KeyvalueCondition("k", "between", 1.0, 2.5)),
        (
            {"value": "a", "secondValue": "b", "op": "notBetween"},
            KeyvalueCondition("k", "between", "a", "b", negated=True),
        ),
    ],
)
def test_conditions_are_parsed(wanted: dict[str, object], found: KeyvalueCondition) -> None:
    assert condition(**wanted) == found


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_empty_conditions_are_none(text: str | None) -> None:
    assert schemas.parse_conditions(text) == []


@pytest.mark.parametrize(
    "wanted",
    [
        *({}, {"value": None}, {"op": "eq"}, {"value": "v", "op": "regexp"}, {"value": "v", "op": "EQ"}),
        *({"value": "v", "op": [1]}, {"value": 1, "op": "between"}, {"value": 1, "secondValue": "b", "op": "between"}),
        *(
            {"value": "a", "op": "between"},
            {"value": "a", "secondValue": "", "op": "between"},
            {"value": "", "op": "gt"},
        ),
        {"value": 10**400, "op": "gt"},
    ],
)
def test_conditions_that_are_none(wanted: dict[str, object]) -> None:
    with pytest.raises(InvalidLegacyRequest):
        condition(**wanted)


@pytest.mark.parametrize("value", [{}, [], "x" * 1025, "a\0"])
def test_values_that_no_file_has(value: object) -> None:
    with pytest.raises(InvalidFileMetadata):
        condition(value=value)


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"k": 1}', '{"k": [1]}', '{"k": "{"}'])
def test_malformed_conditions_are_refused(text: str) -> None:
    with pytest.raises(InvalidLegacyRequest):
        schemas.parse_conditions(text)


def test_there_are_so_many_conditions() -> None:
    given = {str(place): {"value": 1} for place in range(11)}
    with pytest.raises(InvalidLegacyRequest):
        schemas.parse_conditions(json.dumps(given))
    assert len(schemas.parse_conditions(json.dumps(dict(list(given.items())[:10])))) == 10


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, PinFilter()),
        ({"status": "pinned"}, PinFilter(status="pinned")),
        ({"cid": OLD}, PinFilter(cid=[NEW, OLD])),
        ({"hashContains": "Qm"}, PinFilter(hash_contains="Qm")),
        ({"groupId": "g"}, PinFilter(group_id="g")),
        ({"pinStart": "2026-11-21"}, PinFilter(pinned=(DAY, None))),
        ({"pinEnd": "2026-11-21T10:29:47.355Z"}, PinFilter(pinned=(None, NOW))),
        ({"unpinStart": "2026-11-21T01:00:00+01:00"}, PinFilter(unpinned=(DAY, None))),
        ({"unpinEnd": "2026-11-21T00:00:00"}, PinFilter(unpinned=(None, DAY))),
        ({"pinSizeMin": "1", "pinSizeMax": "2"}, PinFilter(size=(1, 2))),
        ({"metadata[name]": "n"}, PinFilter(name="n")),
        (
            {"metadata[keyvalues]": '{"k":{"value":"v","op":"eq"}}'},
            PinFilter(conditions=(KeyvalueCondition("k", "eq", "v"),)),
        ),
    ],
)
def test_list_queries_become_filters(query: dict[str, str], found: PinFilter) -> None:
    chosen = schemas.PinListParameters.model_validate(query).to_filter()
    assert replace(chosen, conditions=tuple(chosen.conditions)) == found


@pytest.mark.parametrize(
    "query",
    [
        *(
            {"status": "queued"},
            {"hashContains": "x" * 129},
            {"groupId": "a\0"},
            {"pinStart": "x"},
            {"pinStart": "0.5"},
            {"pinSizeMin": "-1"},
        ),
        *({"pinSizeMax": str(2**61)}, {"pageLimit": "0"}, {"pageLimit": "1001"}, {"pageOffset": "-1"}),
        *({"metadata[name]": "n" * 256}, {"includeCount": "maybe"}),
    ],
)
def test_lists_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        schemas.PinListParameters.model_validate(query)


NOTE = FileMetadata("n", {"a": 1, "b": "x"}, "g", NOW)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({}, NOTE),
        ({"name": "m"}, replace(NOTE, name="m")),
        ({"name": ""}, replace(NOTE, name=None)),
        ({"keyvalues": {"a": None, "c": True}}, replace(NOTE, keyvalues={"b": "x", "c": True})),
        ({"keyvalues": {}}, NOTE),
    ],
)
def test_changes_are_applied_to_metadata(body: dict[str, Any], wanted: FileMetadata) -> None:
    assert schemas.HashMetadataRequest.model_validate({"ipfsPinHash": OLD, **body}).apply(NOTE) == wanted


def test_how_pins_are_told() -> None:
    assert schemas.pin_file_response(FILE).model_dump(mode="json", by_alias=True) == {
        "IpfsHash": OLD,
        "PinSize": 5,
        "Timestamp": "2026-11-21T10:29:47.355000Z",
        "ID": "i",
        "Name": "n",
        "NumberOfFiles": 1,
        "MimeType": "text/plain",
        "GroupId": "g",
        "Keyvalues": {"a": 1},
        "isDuplicate": False,
    }


def test_rows_of_the_list_of_files() -> None:
    rows = [schemas.pin_list_row(file).model_dump(mode="json") for file in (FILE, replace(FILE, deleted_at=NOW))]
    assert [row["date_unpinned"] for row in rows] == [None, "2026-11-21T10:29:47.355000Z"]
    assert rows[0] == {
        "id": "i",
        "ipfs_pin_hash": OLD,
        "size": 5,
        "user_id": "t",
        "date_pinned": "2026-11-21T10:29:47.355000Z",
        "date_unpinned": None,
        "metadata": {"name": "n", "keyvalues": {"a": 1}},
        "regions": [],
        "mime_type": "text/plain",
        "number_of_files": 1,
    }


def by_hash(**body: Any) -> PinRequest:
    return schemas.PinByHashRequest.model_validate({"hashToPin": NEW, **body}).to_pin_request()


def test_pins_by_hash() -> None:
    wanted = PinRequest(NEW, "n", {"a": 1, "b": "x"}, "g", [HOST])
    metadata = {"name": "n", "keyvalues": {"a": 1, "b": "x", "c": None}}
    options = {"groupId": "g", "hostNodes": [HOST], "unknown": 1}
    assert by_hash(pinataMetadata=metadata, pinataOptions=options) == wanted
    assert by_hash() == by_hash(pinataMetadata={}, pinataOptions={}) == by_hash(pinataMetadata=None) == PinRequest(NEW)
    assert by_hash(pinataOptions={"hostNodes": ""}) == PinRequest(NEW)
    assert by_hash(hashToPin=OLD).cid == OLD
    with pytest.raises(InvalidCid):
        by_hash(hashToPin="x")
    with pytest.raises(InvalidFileMetadata):
        by_hash(pinataMetadata={"keyvalues": {"a": {}}})


def test_pin_jobs_begin_with_the_oldest() -> None:
    assert schemas.LegacyPinJobParameters.model_validate({}).to_pin_query() == PinQuery(ascending=True)
    chosen = schemas.LegacyPinJobParameters.model_validate({"sort": "DSC", "ipfs_pin_hash": OLD, "status": "expired"})
    assert chosen.to_pin_query() == PinQuery([PinState.EXPIRED], [NEW, OLD])
    with pytest.raises(InvalidCid):
        schemas.LegacyPinJobParameters(ipfs_pin_hash="x").to_pin_query()


@pytest.mark.parametrize("query", [{"limit": "1001"}, {"offset": "-1"}, {"offset": "1000001"}, {"sort": "up"}])
def test_pin_jobs_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        schemas.LegacyPinJobParameters.model_validate(query)


def test_responses_about_pins_by_hash() -> None:
    assert schemas.PinByHashResponse(id="p", ipfs_hash=OLD, status=PinState.SEARCHING, name="n").model_dump(
        mode="json", by_alias=True
    ) == {
        "id": "p",
        "ipfsHash": OLD,
        "status": "searching",
        "name": "n",
    }
    assert schemas.pin_job_row(PIN).model_dump(mode="json") == {
        "id": "p",
        "ipfs_pin_hash": OLD,
        "date_queued": "2026-11-21T10:29:47.355000Z",
        "name": "n",
        "status": "searching",
        "keyvalues": {"a": 1},
        "host_nodes": [HOST],
        "pin_policy": None,
    }


def test_groups_in_camel_case() -> None:
    assert schemas.legacy_group(GROUP).model_dump(mode="json", by_alias=True) == {
        "id": "g",
        "user_id": "t",
        "name": "n",
        "createdAt": "2026-11-21T10:29:47.355000Z",
        "updatedAt": "2026-11-21T10:29:47.355000Z",
    }


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "n" * 101}, {"name": "a\0"}, {"name": None}])
def test_group_names_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        schemas.GroupNameRequest.model_validate(body)


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "1001"}, {"offset": "-1"}, {"nameContains": "n" * 101}])
def test_group_lists_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        schemas.LegacyGroupParameters.model_validate(query)
