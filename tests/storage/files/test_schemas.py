"""Filters of a list, changes of a file, and the response for a file."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from roost.core import clock
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.files import schemas
from roost.storage.files.model import EmptyFileUpdate, File, FileFilter, FileMetadata, InvalidFileMetadata

V0 = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
V1 = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
FILE = File("i", "t", ContentNetwork.PUBLIC, V1, 5, 1, "text/plain", FileMetadata("n", {"a": 1}, "g", NOW), NOW, NOW)
LATER = clock.utc_now().replace(microsecond=0) + timedelta(days=1)


def chosen(**query: str) -> FileFilter:
    names = {name: text for name, text in query.items() if "[" not in name}
    return schemas.FileListParameters.model_validate(names).filter(query)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, FileFilter()),
        ({"name": "", "group": "", "mimeType": "", "cid": "", "metadata": ""}, FileFilter()),
        ({"name": "n"}, FileFilter(name="n")),
        ({"group": "g"}, FileFilter(group_id="g")),
        ({"group": "null"}, FileFilter(group_id="null")),
        ({"mimeType": "image/png"}, FileFilter(mime_type="image/png")),
        ({"cid": V0}, FileFilter(cid=[V1, V0])),
        ({"cid": V1}, FileFilter(cid=[V1, V0])),
        ({"order": "ASC"}, FileFilter(ascending=True)),
        ({"order": "asc"}, FileFilter(ascending=True)),
        ({"order": "DESC"}, FileFilter()),
        ({"cidPending": "true"}, FileFilter(nothing=True)),
        ({"cidPending": "false"}, FileFilter()),
        ({"keyvalues[a]": "1"}, FileFilter(keyvalues={"a": "1"})),
        ({"metadata[a]": "1"}, FileFilter(keyvalues={"a": "1"})),
        ({"keyvalues[a]": "1", "metadata[b]": "2"}, FileFilter(keyvalues={"a": "1", "b": "2"})),
        ({"keyvalues[a[b]]": "1"}, FileFilter(keyvalues={"a[b]": "1"})),
        ({"keyvalues[\u00fc \u6f22]": "1"}, FileFilter(keyvalues={"\u00fc \u6f22": "1"})),
        ({"metadata": '{"a": 1}'}, FileFilter(keyvalues={"a": 1})),
        ({"metadata": '{"keyvalues": {"a": 1}}'}, FileFilter(keyvalues={"a": 1})),
        ({"metadata": '{"a": 1}', "keyvalues[a]": "2"}, FileFilter(keyvalues={"a": 1})),
        ({"keyvalues[]": "1", "keyvalues": "x", "keyvalues[a": "1", "xkeyvalues[a]": "1"}, FileFilter()),
        ({"unknown": "x"}, FileFilter()),
    ],
)
def test_queries_become_filters(query: dict[str, str], wanted: FileFilter) -> None:
    assert chosen(**query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        {"metadata": "{"},
        {"metadata": "[]"},
        {"metadata": '{"a": {}}'},
        {"keyvalues[a]": "a\0"},
        {"keyvalues[a]": "x" * 1025},
        {f"keyvalues[{'k' * 256}]": "x"},
        {f"keyvalues[{place}]": "x" for place in range(11)},
    ],
)
def test_keyvalues_that_no_file_has(query: dict[str, str]) -> None:
    with pytest.raises(InvalidFileMetadata):
        chosen(**query)


def test_a_cid_that_is_none() -> None:
    with pytest.raises(InvalidCid):
        chosen(cid="x")


@pytest.mark.parametrize(
    "query",
    [{"limit": "x"}, {"order": "up"}, {"order": ""}, {"cidPending": "maybe"}, {"name": "a\0"}, {"group": "\ud800"}],
)
def test_queries_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        schemas.FileListParameters.model_validate(query)


def change(note: FileMetadata, **body: Any) -> FileMetadata:
    return schemas.UpdateFileRequest.model_validate(body).apply(note)


NOTE = FileMetadata("n", {"a": 1, "b": "x"}, "g", NOW)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"name": "m"}, replace(NOTE, name="m")),
        ({"name": ""}, replace(NOTE, name=None)),
        ({"name": None}, NOTE),
        ({"keyvalues": {}}, NOTE),
        ({"keyvalues": None}, NOTE),
        ({"keyvalues": {"c": True}}, replace(NOTE, keyvalues={"a": 1, "b": "x", "c": True})),
        ({"keyvalues": {"a": 2.5}}, replace(NOTE, keyvalues={"a": 2.5, "b": "x"})),
        ({"keyvalues": {"a": None, "z": None}}, replace(NOTE, keyvalues={"b": "x"})),
        ({"expires_at": None}, replace(NOTE, expires_at=None)),
        ({"expires_at": int(LATER.timestamp())}, replace(NOTE, expires_at=LATER)),
        ({"name": "m", "unknown": 1}, replace(NOTE, name="m")),
    ],
)
def test_given_fields_are_changed(body: dict[str, Any], wanted: FileMetadata) -> None:
    assert change(NOTE, **body) == wanted


@pytest.mark.parametrize("body", [{}, {"unknown": 1}, {"group_id": "h"}])
def test_nothing_to_change(body: dict[str, Any]) -> None:
    with pytest.raises(EmptyFileUpdate):
        change(NOTE, **body)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "n" * 256},
        {"keyvalues": {"": "x"}},
        {"keyvalues": {"a": "x" * 1025}},
        {"keyvalues": {"a": "\0"}},
        {"keyvalues": dict.fromkeys("cdefghijk", 1)},  # eleven with the existing ones
        {"expires_at": 1},
        {"expires_at": -1},
        {"expires_at": 10**18},
    ],
)
def test_changes_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidFileMetadata):
        change(NOTE, **body)


@pytest.mark.parametrize(
    "body", [{"name": "a\0"}, {"name": 1}, {"keyvalues": []}, {"keyvalues": {"a": {}}}, {"expires_at": "x"}]
)
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        change(NOTE, **body)


def test_how_a_file_is_told() -> None:
    assert schemas.FileItem.from_file(FILE).model_dump(mode="json") == {
        "id": "i",
        "user_id": "t",
        "name": "n",
        "cid": V1,
        "size": 5,
        "number_of_files": 1,
        "mime_type": "text/plain",
        "keyvalues": {"a": 1},
        "group_id": "g",
        "network": "public",
        "created_at": "2026-11-21T10:29:47.355000Z",
        "updated_at": "2026-11-21T10:29:47.355000Z",
        "expires_at": "2026-11-21T10:29:47.355000Z",
    }


def test_pages_of_files() -> None:
    told = schemas.file_list([replace(FILE, metadata=FileMetadata())], None).model_dump(mode="json")
    assert told["next_page_token"] is None
    assert [told["files"][0][name] for name in ("name", "group_id", "expires_at")] == [None] * 3
    assert schemas.file_list([], "next").next_page_token == "next"
