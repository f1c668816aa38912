"""Requests for signed URLs: one path, two meanings."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from roost.core import clock
from roost.storage.files.signed_urls.api import SignDownloadRequest, SignRequest, SignUploadRequest
from roost.storage.files.signed_urls.model import InvalidSignedUrl, UploadGrant, ValidityPeriod

SIGNING: TypeAdapter[SignDownloadRequest | SignUploadRequest] = TypeAdapter(SignRequest)
URL = "https://a.org/files/x"


def test_with_a_url_it_is_a_download() -> None:
    found = SIGNING.validate_python({"url": URL, "expires": 60, "date": 5, "method": "GET"})
    assert found == SignDownloadRequest(url=URL, expires=60, date=5, method="GET")
    assert found.validity_period() == ValidityPeriod(5, 60)


def test_without_one_it_is_an_upload() -> None:
    found = SIGNING.validate_python({"expires": 60})
    assert isinstance(found, SignUploadRequest)
    assert found.grant("t", "f") == UploadGrant("t", "f", {"network": "private"})


def test_the_date_is_now_when_it_is_left_out() -> None:
    before = int(clock.utc_now().timestamp())
    found = SignUploadRequest(expires=60).validity_period()
    assert before <= found.date <= int(clock.utc_now().timestamp())


def test_all_that_an_upload_may_be_bound_to() -> None:
    found = SIGNING.validate_python(
        {
            "expires": 60,
            "network": "public",
            "filename": "a.png",
            "group_id": "g",
            "keyvalues": {"a": 1, "b": "\u00fc", "c": None, "d": True},
            "cid_version": "v0",
            "max_file_size": 10,
            "allow_mime_types": ["image/*", "text/plain"],
            "streamable": True,
        }
    )
    assert isinstance(found, SignUploadRequest)
    grant = found.grant("t", "f")
    assert grant.max_size == 10
    assert grant.mime_types == ("image/*", "text/plain")
    assert json.loads(grant.fields["keyvalues"]) == {"a": 1, "b": "\u00fc", "c": None, "d": True}
    rest = {name: text for name, text in grant.fields.items() if name != "keyvalues"}
    assert rest == {"network": "public", "name": "a.png", "group_id": "g", "cid_version": "v0"}
    assert UploadGrant.from_options("t", "f", grant.encode_options()) == grant


@pytest.mark.parametrize("body", [{"url": URL}, {"url": "u" * 2049, "expires": 1}, {"url": None, "expires": 1}])
def test_malformed_downloads_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SIGNING.validate_python(body)


@pytest.mark.parametrize(
    "said",
    [
        {"expires": None},
        {"expires": "soon"},
        {"network": "ipfs"},
        {"filename": "n" * 256},
        {"filename": "a\0"},
        {"group_id": "g" * 37},
        {"group_id": "a\0"},
        {"keyvalues": {str(place): "x" for place in range(11)}},
        {"keyvalues": {"a": {}}},
        {"keyvalues": {"a": "x" * 1025}},
        {"keyvalues": {"a\0": "x"}},
        {"keyvalues": []},
        {"cid_version": "v2"},
        {"max_file_size": 0},
        {"max_file_size": -1},
        {"allow_mime_types": "image/png"},
        {"allow_mime_types": ["image/png\r\nX: y"]},
        {"allow_mime_types": [""]},
        {"allow_mime_types": ["x" * 128]},
        {"allow_mime_types": ["a"] * 33},
    ],
)
def test_malformed_upload_grants_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SIGNING.validate_python({"expires": 60, **said})


@pytest.mark.parametrize("window", [{"expires": 0}, {"expires": -1}, {"expires": 10**9}, {"expires": 1, "date": -1}])
def test_times_that_cannot_be_signed(window: dict[str, int]) -> None:
    with pytest.raises(InvalidSignedUrl):
        SIGNING.validate_python(window).validity_period()
