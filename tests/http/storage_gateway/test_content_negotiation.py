from collections.abc import Mapping
from urllib.parse import parse_qsl

import pytest

from roost.http.storage_gateway.errors import FormatNotServed, InvalidGatewayUrl
from roost.http.storage_gateway.formats import CAR, RAW, TAR, ContentFormat, negotiate_format
from roost.http.storage_gateway.request import GatewayRequest
from roost.storage.content.unixfs.cid import RAW as RAW_CODEC
from roost.storage.content.unixfs.cid import Cid


def create_request(query: str = "", accept: str | None = None, *, is_private: bool = False) -> GatewayRequest:
    headers: Mapping[str, str] = {} if accept is None else {"accept": accept}
    cid = Cid.for_block(RAW_CODEC, b"")
    fields = dict(parse_qsl(query, keep_blank_values=True))
    return GatewayRequest(
        "g", False, cid, (), False, False, True, is_private, False, f"/ipfs/{cid}", query, fields, headers, None
    )


@pytest.mark.parametrize(
    ("query", "accept", "name"),
    [
        ("", None, None),
        ("", "", None),
        ("", "*/*", None),
        ("", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", None),
        ("", RAW, "raw"),
        ("", CAR.upper(), "car"),
        ("", TAR, "tar"),
        ("", f"{RAW}, */*;q=0.1", "raw"),
        ("", f"*/*, {RAW}", "raw"),
        ("", f"text/html, {RAW};q=0.5", None),
        ("", f"{RAW};q=0.5, {CAR};q=0.7, text/html;q=0.1", "car"),
        ("", f"{RAW};q=0", None),
        ("", f"{RAW};q=x", None),
        ("", f"{RAW};q=nan", None),
        ("", f"{RAW};q=2", None),
        ("", f"x{RAW}", None),
        ("", ",;,;q=,", None),
        ("", ",".join(f"a/b{n}" for n in range(1000)) + f",{RAW}", None),
        ("format=raw", None, "raw"),
        ("format=car", RAW, "car"),
        ("format=tar", f"{CAR};version=9", "tar"),
    ],
)
def test_the_address_counts_before_the_header(query: str, accept: str | None, name: str | None) -> None:
    form = negotiate_format(create_request(query, accept))
    assert (form and form.name) == name


@pytest.mark.parametrize("query", ["format=", "format=RAW", "format=zip", "format=dag-cbor", "format=ipns-record"])
def test_forms_that_are_not_there(query: str) -> None:
    with pytest.raises(FormatNotServed):
        negotiate_format(create_request(query))


@pytest.mark.parametrize(
    ("query", "accept", "dups"),
    [
        ("format=car", None, False),
        ("format=car&car-dups=y", None, True),
        ("format=car&car-dups=n", f"{CAR};dups=y", False),
        ("format=car&car-order=unk", None, False),
        ("", f"{CAR}; version=1; order=dfs; dups=y", True),
        ("", f'{CAR};version="1";dups="n"', False),
        ("", f"{CAR};order=abc, {CAR};order=dfs;dups=y;q=0.5", True),
        ("", f"{CAR};dups=n;q=0.5, {CAR};dups=y", True),
        ("car-dups=y", CAR, True),
        ("format=car", f"{CAR};dups=y", True),
    ],
)
def test_a_car_as_it_is_wanted(query: str, accept: str | None, *, dups: bool) -> None:
    form = negotiate_format(create_request(query, accept))
    assert form is not None
    assert (form.name, form.dups) == ("car", dups)


@pytest.mark.parametrize(
    ("query", "accept"),
    [
        *((f"format=car&car-{field}", None) for field in ("version=2", "order=bfs", "dups=maybe", "dups=")),
        ("", f"{CAR};version=2"),
        ("", f"{CAR};order=bfs"),
        ("format=car", f"{CAR};dups=maybe"),
        ("format=car&car-version=2", f"{CAR};version=1"),
    ],
)
def test_cars_that_are_not_made(query: str, accept: str | None) -> None:
    with pytest.raises(InvalidGatewayUrl):
        negotiate_format(create_request(query, accept))


@pytest.mark.parametrize(
    ("query", "accept", "location"),
    [
        ("format=raw", RAW, None),
        ("format=car&car-dups=y", None, None),
        ("", RAW, "format=raw"),
        ("a=b%20c", TAR, "a=b%20c&format=tar"),
        ("", f"{CAR};version=1;dups=y", "format=car&car-dups=y"),
        ("format=car", f"{CAR};dups=y", "format=car&car-dups=y"),
    ],
)
def test_an_address_that_says_it_all(query: str, accept: str | None, location: str | None) -> None:
    form = negotiate_format(create_request(query, accept))
    assert form is not None
    assert form.location == location


def test_a_signed_link_gives_what_was_signed() -> None:
    assert negotiate_format(create_request("", CAR, is_private=True)) is None
    assert negotiate_format(create_request("format=tar", CAR, is_private=True)) == ContentFormat("tar")
