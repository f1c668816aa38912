"""Metadata of a file in forms and in upload headers."""

from datetime import UTC, datetime, timedelta

import pytest

from roost.core import clock
from roost.core.problem import Problem
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025, V0, V1
from roost.storage.files.model import FileMetadata
from roost.storage.files.uploads.model import UploadMetadata, parse_upload_metadata

LATER = clock.utc_now().replace(microsecond=0) + timedelta(days=1)


def test_empty_form_has_the_defaults() -> None:
    assert (
        parse_upload_metadata({})
        == UploadMetadata()
        == UploadMetadata(ContentNetwork.PRIVATE, FileMetadata(), None, wrap=False, car=False)
    )


def test_empty_fields_say_nothing() -> None:
    names = ("network", "name", "group_id", "group", "keyvalues", "expires_at", "cid_version", "car")
    assert parse_upload_metadata(dict.fromkeys(names, "")) == UploadMetadata()


def test_all_of_it() -> None:
    said = {
        "network": "public",
        "name": "n",
        "group_id": "g",
        "keyvalues": '{"a": 1, "b": null}',
        "expires_at": str(int(LATER.timestamp())),
        "cid_version": "v0",
        "car": "true",
        "unknown": "is nobody's",
    }
    note = FileMetadata("n", {"a": 1}, "g", LATER)
    assert parse_upload_metadata(said) == UploadMetadata(ContentNetwork.PUBLIC, note, V0, wrap=False, car=True)


@pytest.mark.parametrize(
    ("said", "group_id"),
    [({"group": "g"}, "g"), ({"group_id": "g"}, "g"), ({"group_id": "g", "group": "h"}, "g"), ({"group_id": ""}, None)],
)
def test_both_names_of_a_group(said: dict[str, str], group_id: str | None) -> None:
    assert parse_upload_metadata(said).file_metadata.group_id == group_id


@pytest.mark.parametrize(
    ("text", "profile"), [("0", V0), ("v0", V0), ("1", V1), ("v1", V1), ("unixfs-v1-2025", UNIXFS_V1_2025)]
)
def test_versions_choose_the_profile(text: str, profile: object) -> None:
    assert parse_upload_metadata({"cid_version": text}).profile is profile


@pytest.mark.parametrize(("text", "is_car"), [("true", True), ("True", True), ("1", True), ("false", False)])
def test_flags_of_a_form_are_parsed(text: str, is_car: bool) -> None:
    assert parse_upload_metadata({"car": text}).car is is_car


@pytest.mark.parametrize(
    "said",
    [
        {"network": "Public"},
        {"network": "ipfs"},
        {"name": "n" * 256},
        {"name": "a\0"},
        {"group_id": "a\0"},
        {"group": "\ud800"},
        {"keyvalues": "{"},
        {"keyvalues": "[]"},
        {"keyvalues": '{"a": {}}'},
        {"expires_at": "soon"},
        {"expires_at": str(int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()))},
        {"cid_version": "v2"},
    ],
)
def test_malformed_metadata_are_refused(said: dict[str, str]) -> None:
    with pytest.raises(Problem):
        parse_upload_metadata(said)
