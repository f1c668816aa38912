"""Metadata of files in every form that clients use, and refused forms."""

from datetime import timedelta

import pytest

from roost.core import clock
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025, V0, V1
from roost.storage.files import metadata_parsing
from roost.storage.files.model import InvalidFileMetadata


@pytest.mark.parametrize(
    "given",
    [
        *({"a": 1, "b": "x"}, '{"a": 1, "b": "x"}', {"a": 1, "b": "x", "c": None}),
        *({"keyvalues": {"a": 1, "b": "x"}}, '{"keyvalues": {"a": 1, "b": "x"}}'),
    ],
)
def test_keyvalues_of_a_form_are_parsed(given: object) -> None:
    assert metadata_parsing.parse_keyvalues(given) == {"a": 1, "b": "x"}


def test_a_key_that_is_named_keyvalues() -> None:
    assert metadata_parsing.parse_keyvalues({"keyvalues": "text"}) == {"keyvalues": "text"}
    assert metadata_parsing.parse_keyvalues("") == {}


@pytest.mark.parametrize(
    ("given", "told"), [({"": "x"}, "keys"), ({"k" * 256: "x"}, "keys"), ({"k": "v" * 1025}, "keyvalues")]
)
def test_which_side_of_a_pair_is_wrong(given: object, told: str) -> None:
    with pytest.raises(InvalidFileMetadata) as raised:
        metadata_parsing.parse_keyvalues(given)
    assert raised.value.message.startswith(told)


@pytest.mark.parametrize(
    "given",
    [
        "{",
        "[]",
        "1",
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"a":{}}',
        '{"a":"\\u0000"}',
        '{"a":"\\ud800"}',
        '{"\\ud800":1}',
        None,
    ],
)
def test_keyvalues_that_are_none(given: object) -> None:
    with pytest.raises(InvalidFileMetadata):
        metadata_parsing.parse_keyvalues(given)


def test_expiry_is_parsed_in_each_form() -> None:
    later = clock.utc_now().replace(microsecond=0) + timedelta(hours=1)
    assert (
        metadata_parsing.parse_expiry(str(int(later.timestamp())))
        == metadata_parsing.parse_expiry(int(later.timestamp()))
        == later
    )
    assert metadata_parsing.parse_expiry(None) is metadata_parsing.parse_expiry("") is None


@pytest.mark.parametrize("given", ["1", 1, "-1", "x", "1e9", "\u0663", "9" * 15, 9 * 10**14, "9" * 5000])
def test_malformed_or_past_expiry_is_refused(given: str | int) -> None:
    with pytest.raises(InvalidFileMetadata):
        metadata_parsing.parse_expiry(given)


def test_profiles_of_cid_versions_are_parsed() -> None:
    assert [metadata_parsing.parse_profile(text) for text in (None, "", "0", "v0", "1", "v1")] == [
        V1,
        V1,
        V0,
        V0,
        V1,
        V1,
    ]
    assert metadata_parsing.parse_profile("unixfs-v1-2025") is UNIXFS_V1_2025
    with pytest.raises(InvalidFileMetadata):
        metadata_parsing.parse_profile("v2")


@pytest.mark.parametrize("text", ["Public", "", "prod", "public "])
def test_unknown_network_is_refused(text: str) -> None:
    assert metadata_parsing.parse_network("public") is ContentNetwork.PUBLIC
    with pytest.raises(InvalidFileMetadata):
        metadata_parsing.parse_network(text)


def test_groups_are_parsed_or_refused() -> None:
    assert (
        metadata_parsing.parse_group_id("g"),
        metadata_parsing.parse_group_id(""),
        metadata_parsing.parse_group_id(None),
    ) == ("g", None, None)
    for text in ("a\0", "\ud800"):
        with pytest.raises(InvalidFileMetadata):
            metadata_parsing.parse_group_id(text)


def test_names_are_parsed_or_refused() -> None:
    assert (metadata_parsing.parse_name("n"), metadata_parsing.parse_name(""), metadata_parsing.parse_name(None)) == (
        "n",
        None,
        None,
    )
    for text in ("n" * 256, "a\0", "\ud800"):
        with pytest.raises(InvalidFileMetadata):
            metadata_parsing.parse_name(text)


@pytest.mark.parametrize(("text", "flag"), [(None, False), ("", False), ("0", False), ("False", False), ("TRUE", True)])
def test_flags_are_parsed(text: str | None, *, flag: bool) -> None:
    assert metadata_parsing.parse_flag(text) is flag


def test_malformed_flag_is_refused_with_its_value() -> None:
    with pytest.raises(InvalidFileMetadata, match="got 'yes'"):
        metadata_parsing.parse_flag("yes")
