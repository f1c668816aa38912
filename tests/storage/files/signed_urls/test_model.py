"""The signed parts of a URL, and its validity."""

import base64
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.files.signed_urls.model import (
    SIGNATURE,
    InvalidSignedUrl,
    SignedAddress,
    SignedUrlExpired,
    SignedUrlRefused,
    UploadGrant,
    ValidityPeriod,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=6)


@pytest.mark.parametrize(("date", "expires"), [(-1, 1), (0, 0), (0, -1), (10**14, 1), (1, 10**9)])
def test_times_have_bounds(date: int, expires: int) -> None:
    with pytest.raises(InvalidSignedUrl):
        ValidityPeriod(date, expires)


def test_a_window_forgives_a_clock_that_is_ahead() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    window = ValidityPeriod(int(begin.timestamp()), 60)
    for seconds in (-299, 0, 59):
        window.check(begin + timedelta(seconds=seconds))
    for seconds in (-301, 60, 10**6):
        with pytest.raises(SignedUrlExpired):
            window.check(begin + timedelta(seconds=seconds))


def test_the_order_of_parameters_and_what_proxies_change_is_not_signed() -> None:
    one = SignedAddress.parse("https://A.example.org/files/%C3%BC?a=1&b=2")
    other = SignedAddress.parse("http://a.example.org:8080/files/%c3%bc?b=2&a=1&X-Signature=00")
    assert one.signed_bytes("t") == other.signed_bytes("t")


def test_no_two_addresses_are_signed_alike() -> None:
    urls = (
        "a.org/x?a=1&b=2",
        "a.org/x?a=1%26b=2",
        "a.org/x?a=2&b=1",
        "a.org/x/a?b=2",
        "a.org/x?a=1&b=2&b=2",
        "b.org/x",
    )
    assert len({SignedAddress.parse(f"https://{url}").signed_bytes("t") for url in urls}) == len(urls)
    assert SignedAddress.parse("https://a.org/").signed_bytes("t") != SignedAddress.parse(
        "https://a.org/"
    ).signed_bytes("u")


def test_parameters_that_count_must_occur_once() -> None:
    for query in ("", "X-Date=1&X-Date=1&X-Expires=1", "X-Date=one&X-Expires=1", "X-Date=1&X-Expires=0"):
        with pytest.raises(SignedUrlRefused):
            SignedAddress.parse(f"https://a.org/?{query}").validity_period()


@pytest.mark.parametrize(
    ("url", "host", "path", "pairs"),
    [
        ("https://a.org", "a.org", "", []),
        ("https://a.org/files/x", "a.org", "/files/x", []),
        ("HTTPS://A.org:8443/x?y", "a.org", "/x", [("y", "")]),
        ("http://[::1]:80/x?a=1&a=2&b=%20+c", "::1", "/x", [("a", "1"), ("a", "2"), ("b", "  c")]),
        ("http://a.org/%2e%2e/x", "a.org", "/../x", []),
        ("http://a.org?x=1?y", "a.org", "", [("x", "1?y")]),
    ],
)
def test_the_parts_of_an_address(url: str, host: str, path: str, pairs: list[tuple[str, str]]) -> None:
    found = SignedAddress.parse(url)
    assert (found.host, found.path, list(found.pairs)) == (host, path, pairs)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "a.org/x",
            "//a.org/x",
            "/files/x",
            "ftp://a.org/x",
            "javascript:alert(1)",
            "https:",
            "https://",
            "https:///x",
        ),
        *("https://user@a.org/x", "https://user:secret@a.org/x", "https://@a.org/x", "https://[::1/x", "https://[a]/x"),
        *("https://a.org/x#", "https://a.org/x#y", "https://a.org/x?a=1#y"),  # the signed text would not be a parameter
        *(
            "https://a.org/\u00fc",
            "https://\u00fc.org/x",
            "https://a.org/a\nb",
            "https://a.org/\tx",
            "https://a.org/\0",
        ),
        *("https://a.org/?" + "&".join("a" * 65), "https://a.org/" + "x" * 8192),
    ],
)
def test_malformed_signed_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidSignedUrl):
        SignedAddress.parse(url)


@given(PAIRS)
def test_signed_parameters_survive_writing_and_parsing(pairs: list[tuple[str, str]]) -> None:
    """Parameters survive signing and parsing unchanged."""
    written = SignedAddress.parse("https://a.org/files/x").with_parameters(pairs)
    again = SignedAddress.parse(str(written))
    assert list(again.pairs) == pairs
    assert again.signed_bytes("t") == written.signed_bytes("t")
    assert urlsplit(str(written)).path == "/files/x"


@given(PAIRS, PAIRS)
def test_other_parameters_are_another_message(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    base = SignedAddress.parse("https://a.org/files/x")
    kept = [sorted(pair for pair in pairs if pair[0] != SIGNATURE) for pairs in (one, other)]
    same = base.with_parameters(one).signed_bytes("t") == base.with_parameters(other).signed_bytes("t")
    assert same == (kept[0] == kept[1])


@given(st.dictionaries(TEXTS, TEXTS, max_size=4), st.none() | st.integers(1, 10**12), st.lists(TEXTS, max_size=3))
def test_a_grant_there_and_back(fields: dict[str, str], size: int | None, types: list[str]) -> None:
    grant = UploadGrant("t", "f", fields, size, tuple(types))
    options = grant.encode_options()
    assert options.isascii()
    assert parse_qsl(f"X-Options={options}") == [("X-Options", options)]
    assert UploadGrant.from_options("t", "f", options) == grant


@pytest.mark.parametrize("options", ["%%%", "\u00fc", base64.urlsafe_b64encode(b"\xff").decode(), "bm9uZQ"])
def test_options_that_cannot_be_read(options: str) -> None:
    with pytest.raises(SignedUrlRefused):
        UploadGrant.from_options("t", "f", options)


def test_an_uploader_changes_nothing_that_matters_to_others() -> None:
    """The uploader may choose the name unless the signer did, never network, group or expiry."""
    grant = UploadGrant("t", "f", {"network": "public", "name": "signed"})
    said: dict[str, str] = dict.fromkeys(
        ("network", "name", "group_id", "group", "keyvalues", "expires_at", "car", "filename"), "x"
    )
    assert grant.merge_fields(said) == {"network": "public", "name": "signed", "keyvalues": "x", "filename": "x"}
    assert UploadGrant("t", "f").merge_fields({"name": "mine", "cid_version": "v0"}) == {"name": "mine"}


def test_a_window_as_parameters() -> None:
    found = SignedAddress.parse("https://a.org/x?X-Date=1700000000&X-Expires=60").validity_period()
    assert found == ValidityPeriod(1_700_000_000, 60)
    assert found.end == datetime.fromtimestamp(1_700_000_060, UTC)


@pytest.mark.parametrize("date", ["", "-1", "+1", "1.0", "1e9", "\u0661", "9" * 13, "9" * 12])
def test_dates_that_are_none(date: str) -> None:
    address = SignedAddress.parse("https://a.org/x").with_parameters([("X-Date", date), ("X-Expires", "60")])
    with pytest.raises(SignedUrlRefused):
        address.validity_period()


def test_the_message_tells_its_parts_apart() -> None:
    tenant, host, path, pairs = json.loads(
        SignedAddress.parse("https://a.org/x?b=2&a=1&X-Signature=z").signed_bytes("t")
    )
    assert (tenant, host, path, pairs) == ("t", "a.org", "/x", [["a", "1"], ["b", "2"]])
