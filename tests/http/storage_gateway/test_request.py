"""How a request is read: its address segment by segment as it was sent, its fields, and who sent it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.http.storage_gateway.errors import InvalidGatewayUrl
from roost.http.storage_gateway.request import GatewayRequest, parse_request
from roost.storage.content.unixfs.cid import Cid
from roost.web.url_rule import HostAddress, HostKind, RequestAddress, UrlRule

TEXT = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
CID = Cid.parse(TEXT)


def create_request(
    target: str,
    *headers: tuple[str, str],
    cid_host: str | None = None,
    method: str = "GET",
    ip: str | None = "192.0.2.1",
) -> GatewayRequest:
    path, _, query = target.partition("?")
    host = HostAddress(HostKind.STORAGE_GATEWAY, "", gateway="shop", cid=cid_host)
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "client": None if ip is None else (ip, 1),
        "state": {"address": RequestAddress(UrlRule(), host)},
    }
    return parse_request(scope)


@pytest.mark.parametrize(
    ("rest", "path", "slash"),
    [
        ("", [], False),
        ("/", [], True),
        ("/a", ["a"], False),
        ("/a/", ["a"], True),
        ("/a/b.txt", ["a", "b.txt"], False),
        ("/a%2Fb", ["a/b"], False),  # one name, which no folder of ours has
        ("/a%20b/%E6%BC%A2", ["a b", "\u6f22"], False),
        ("/100%", ["100%"], False),
        ("/%zz", ["%zz"], False),
        ("/a+b", ["a+b"], False),
        ("/...", ["..."], False),
        ("/a:b@c;d=e,f", ["a:b@c;d=e,f"], False),
    ],
)
@pytest.mark.parametrize("own_origin", [False, True])
def test_paths_of_content_are_parsed(rest: str, path: list[str], slash: bool, own_origin: bool) -> None:
    found = create_request(rest or "/", cid_host=TEXT) if own_origin else create_request(f"/ipfs/{TEXT}{rest}")
    assert (found.cid, list(found.path), found.own_origin) == (CID, path, own_origin)
    assert found.slash is (slash or (own_origin and not rest))


@pytest.mark.parametrize(
    "target",
    [
        *("/ipfs/", "/ipfs/x", f"/ipfs/{TEXT}x", f"/ipfs/{TEXT.upper()}x", f"/ipfs//{TEXT}", f"/ipfs/%20{TEXT}"),
        *(f"/ipfs/{TEXT}{rest}" for rest in ("//", "///", "/a//b", "/a//", "/./a", "/a/../b", "/a/..", "/a/.")),
        *(f"/ipfs/{TEXT}/{name}/a" for name in ("%2e", "%2e%2e", ".%2E", "%ff", "%c3", "%ed%a0%80")),
        f"/ipfs/{TEXT}?" + "&".join("a" * 65),
        f"/ipfs/{'a' * 600}",
    ],
)
def test_addresses_that_are_refused(target: str) -> None:
    with pytest.raises(InvalidGatewayUrl):
        create_request(target)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=30))
def test_no_path_leads_up(rest: str) -> None:
    try:
        found = create_request(f"/ipfs/{TEXT}/{rest.replace('?', '')}")
    except InvalidGatewayUrl:
        return
    assert not {"", ".", ".."} & set(found.path)


def test_private_and_public_addresses() -> None:
    assert create_request(f"/files/{TEXT}/a").is_private
    assert not create_request(f"/ipfs/{TEXT}/files/a").is_private
    assert not create_request("/files/x", cid_host=TEXT).is_private
    assert list(create_request("/files/x", cid_host=TEXT).path) == ["files", "x"]


def test_methods_get_and_head_are_kept() -> None:
    assert [create_request(f"/ipfs/{TEXT}", method=method).method for method in ("GET", "HEAD")] == ["GET", "HEAD"]


def test_the_first_of_several_counts() -> None:
    found = create_request(f"/ipfs/{TEXT}?a=1&b=&a=2&c", ("accept", "one"), ("accept", "two"))
    assert found.query == {"a": "1", "b": "", "c": ""}
    assert found.headers["accept"] == "one"
    assert found.query_string == "a=1&b=&a=2&c"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (f"/ipfs/{TEXT}", ""),
        (f"/ipfs/{TEXT}/a/b%20c.txt", "b c.txt"),
        (f"/ipfs/{TEXT}/a.txt?filename=b.txt", "b.txt"),
        (f"/ipfs/{TEXT}/a.txt?filename=", "a.txt"),
        (f"/ipfs/{TEXT}?filename=%E6%BC%A2", "\u6f22"),
    ],
)
def test_filename_of_the_content_is_parsed(target: str, name: str) -> None:
    assert create_request(target).name == name


@pytest.mark.parametrize(
    ("query", "headers", "visitor"),
    [
        ("", [], (None, "192.0.2.1", None)),
        ("?pinataGatewayToken=q", [], ("q", "192.0.2.1", None)),
        ("", [("x-pinata-gateway-token", "h")], ("h", "192.0.2.1", None)),
        ("?pinataGatewayToken=q", [("x-pinata-gateway-token", "h")], ("q", "192.0.2.1", None)),
        ("?pinataGatewayToken=", [("x-pinata-gateway-token", "h")], ("h", "192.0.2.1", None)),
        ("", [("origin", "https://o"), ("referer", "https://r/x")], (None, "192.0.2.1", "https://o")),
        ("", [("referer", "https://r/x")], (None, "192.0.2.1", "https://r/x")),
    ],
)
def test_visitor_is_read_from_query_and_headers(
    query: str, headers: list[tuple[str, str]], visitor: tuple[str | None, str, str | None]
) -> None:
    request = create_request(f"/ipfs/{TEXT}{query}", *headers)
    assert (request.token, request.ip, request.origin) == visitor


def test_nobody_knows_who_asks() -> None:
    request = create_request(f"/ipfs/{TEXT}", ip=None)
    assert (request.token, request.ip, request.origin) == (None, None, None)


@pytest.mark.parametrize("query", ["", "?X-Signature=1&a=%2F"])
def test_the_whole_address_as_it_was_signed(query: str) -> None:
    target = f"/files/{TEXT}/a%2fb{query}"
    assert (
        create_request(target, ("host", "shop.gateways.example:8443")).url
        == f"http://shop.gateways.example:8443{target}"
    )
