"""Malformed requests to the storage API: invalid bodies, wrong lengths, names with line breaks, ambiguous paths."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from tests.contract.endpoints import UNKNOWN, fill_path, routes
from tests.contract.storage import keep
from tests.contract.test_abuse_http import send_raw
from tests.contract.test_input import BODIES
from tests.support.server import RunningServer

MIB = 1024**2
NOWHERE = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4"
FIELDS = {"network": "public", "cid": NOWHERE, "plugin_id": "1", "kind": "ips", "domain": "x", "key": "0" * 20}
NO_JSON = re.compile(r"/v3/files(/{file_id})?|/pinning/pinFileToIPFS|.*{token}")
"""What takes forms and parts."""


@pytest.fixture
def api(server: RunningServer) -> httpx.AsyncClient:
    return server.client(server.key("bent"), "api.localhost")


def targets(*methods: str) -> list[tuple[str, str]]:
    """Return method and address of every operation of the storage API that needs a key."""
    found: list[tuple[str, str]] = []
    for (method, path), row in routes().items():
        if row["credentials"] and "storage" in row["addresses"] and method in methods:
            found.append((method, fill_path(path, FIELDS)))
    return found


def is_well_formed_error(answer: httpx.Response) -> bool:
    """Return whether an error response has the form of its API, is short, and repeats no input."""
    error = answer.json()["error"]
    path = answer.request.url.path
    if path.startswith("/v3"):
        return error.keys() == {"code", "message"} and error["code"] == answer.status_code and len(answer.text) < 500
    return bool(error["reason"] and error["details"]) and len(answer.text) < 600


async def test_a_strangers_body_is_not_awaited(server: RunningServer) -> None:
    """Every writing operation responds to a head whose body never comes, with the status and form of no credential."""
    writing = targets("POST", "PUT", "PATCH", "DELETE")
    assert len(writing) > 50
    for method, target in writing:
        head = f"{method} {target} HTTP/1.1\r\nHost: api.localhost\r\nContent-Length: 1000000\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head.encode())
        async with asyncio.timeout(5):
            answer = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", answer)[0]))
        writer.close()
        assert answer.startswith(b"HTTP/1.1 401 "), (method, target, answer)
        error = json.loads(body)["error"]
        if target.startswith("/v3"):
            assert error == {"code": 401, "message": "Missing Authorization header"}
        else:
            assert error == {"reason": "INVALID_CREDENTIALS", "details": "Missing Authorization header"}


JSON = [(method, target) for method, target in targets("POST", "PUT", "PATCH") if not NO_JSON.fullmatch(target)]


@pytest.mark.parametrize("kind", BODIES)
async def test_a_body_that_is_none(api: httpx.AsyncClient, kind: str) -> None:
    """No operation responds with a 500; operations without a body may ignore it."""
    assert len(JSON) > 25
    for method, target in JSON:
        answer = await api.request(method, target, content=BODIES[kind], headers={"Content-Type": "application/json"})
        told = f"{method} {target} {kind}: {answer.status_code} {answer.text[:200]}"
        assert answer.status_code < 500, told
        if answer.status_code >= 400:
            assert is_well_formed_error(answer), told
        if kind in {"nesting", "object nesting", "not JSON", "bad UTF-8"} and answer.status_code != 404:
            assert answer.status_code == 400 or not _reads_bodies(target), told


def _reads_bodies(target: str) -> bool:
    return not re.search(r"/(access_tokens|ids/[^/]+|rotate_secret|redeliver|test|keys/\w+|api_keys/\w+)$", target)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/xml", "application/x-www-form-urlencoded"])
async def test_another_kind_of_body(server: RunningServer, kind: str) -> None:
    api = server.client(server.key("kinds"), "api.localhost")
    for method, target in JSON:
        answer = await api.request(method, target, content=b"\xff\xfe<a>", headers={"Content-Type": kind})
        assert answer.status_code < 500, (method, target)
        assert answer.status_code >= 400 or not _reads_bodies(target), (method, target)
    assert (await api.get("/v3/groups/public")).json()["data"]["groups"] == []


async def test_compressed_bodies_are_refused_and_not_unpacked(api: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for method, target in [*JSON, ("POST", "/v3/files"), ("POST", "/pinning/pinFileToIPFS")]:
        answer = await api.request(method, target, content=b"\x1f\x8b" + bytes(100), headers=headers)
        assert answer.status_code in {404, 415}, (method, target, answer.text)


@pytest.mark.parametrize("framing", ["true", "short", "chunked"])
@pytest.mark.parametrize("path", ["/v3/groups/public", "/v3/files/sign", "/v3/files/public/pin_by_cid", "/psa/pins"])
async def test_one_byte_too_many(server: RunningServer, path: str, framing: str) -> None:
    line = f"POST {path} HTTP/1.1\r\n".encode() + b"@Content-Type: application/json\r\n"
    body = b'{"name": "' + b"x" * (MIB - 12) + b'"}x'
    if framing == "chunked":
        raw = line + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        raw = line + b"Content-Length: %d\r\n\r\n" % (len(body) - (framing == "short")) + body
    status, answer = await send_raw(server, raw, host="api.localhost", token=server.key("bent"))
    assert status == (400 if framing == "short" else 413)
    assert json.loads(answer)["error"]


async def test_a_pin_of_json_has_its_own_bound(api: httpx.AsyncClient) -> None:
    fits = {"pinataContent": "x" * (9 * MIB)}
    assert (await api.post("/pinning/pinJSONToIPFS", json=fits)).status_code == 200

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"pinataContent": "'
        for _ in range(12):
            yield b"x" * MIB

    answer = await api.post("/pinning/pinJSONToIPFS", content=pieces(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


async def test_a_giant_head_and_endless_names(server: RunningServer, api: httpx.AsyncClient) -> None:
    name = (await api.get("/v3/gateways")).json()["data"]["rows"][0]["domain"]
    host = f"{name}.gateways.localhost"
    file = await keep(server, "bent", ContentNetwork.PUBLIC, b"content")
    good = f"GET /ipfs/{file.cid}".encode()
    for raw, wanted in (
        (good + b" HTTP/1.1\r\n@X: " + b"x" * 200_000 + b"\r\n\r\n", {431}),
        (good + b"/" + b"x/" * 30_000 + b" HTTP/1.1\r\n@\r\n", {400, 404, 414, 431}),
        (good + b"?" + b"a=b&" * 5_000 + b" HTTP/1.1\r\n@\r\n", {400}),
        (good + b"?filename=" + b"n" * 20_000 + b" HTTP/1.1\r\n@\r\n", {200}),
        (good + b" HTTP/1.1\r\n@Range: bytes=" + b"0-0," * 10_000 + b"1-1\r\n\r\n", {200}),
        (good + b" HTTP/1.1\r\n@If-None-Match: " + b'"a",' * 10_000 + b"\r\n\r\n", {200}),
        (good + b" HTTP/1.1\r\n@Accept: " + b"a/b;q=1," * 6_000 + b"\r\n\r\n", {200}),
    ):
        status, body = await send_raw(server, raw, host=host)
        assert status in wanted, (raw[:100], status)
        assert len(body) < 1000


LINES = ["a\r\nSet-Cookie: x=1", "a\nb", "a\rb", "a\0b", "a\u2028b", "a\x85b", '"; filename="b', "\u202ea"]


@pytest.mark.parametrize("name", LINES)
async def test_no_name_breaks_a_line(server: RunningServer, api: httpx.AsyncClient, name: str) -> None:
    """Names and notes are refused, or returned on one line, by the API and by a gateway."""
    file = await keep(server, "bent", ContentNetwork.PUBLIC, b"named")
    for method, path, body in (
        ("PUT", f"/v3/files/public/{file.id}", {"name": name, "keyvalues": {name: name}}),
        ("POST", "/v3/groups/public", {"name": name}),
        ("POST", "/v3/gateways", {"domain": name}),
        ("POST", "/v3/files/public/pin_by_cid", {"cid": NOWHERE, "name": name, "host_nodes": [name]}),
        ("POST", "/v3/pinata/keys", {"keyName": name, "permissions": {"admin": True}}),
        ("POST", "/v3/files/sign", {"url": f"http://x.gateways.localhost/files/{name}", "date": 1, "expires": 1}),
    ):
        answer = await api.request(method, path, json=body)
        assert answer.status_code < 500, (path, answer.text)
        assert_on_one_line(answer)
    uploaded = await api.post("/v3/files", data={"name": name, "network": "public"}, files={"file": ("a", b"1")})
    assert uploaded.status_code in {200, 400}
    assert_on_one_line(uploaded)
    row = (await api.get("/v3/gateways")).json()["data"]["rows"][0]
    visitor = server.client(None, f"{row['domain']}.gateways.localhost")
    for query in ({"filename": name}, {"filename": name, "download": "true"}, {"filename": name, "format": "car"}):
        assert_on_one_line(await visitor.get(f"/ipfs/{file.cid}", params=query))


def assert_on_one_line(answer: httpx.Response) -> None:
    assert "set-cookie" not in answer.headers
    assert all(value.isprintable() for value in answer.headers.values()), answer.headers


@pytest.mark.parametrize(
    "spoofed",
    [
        {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"},
        {"Origin": "https://evil.example", "Referer": "https://evil.example/"},
        {"X-Original-URL": "/v3/pinata/keys", "X-Rewrite-URL": "/v3/pinata/keys"},
    ],
)
async def test_addresses_are_what_the_configuration_says(
    server: RunningServer, api: httpx.AsyncClient, spoofed: Mapping[str, str]
) -> None:
    here = f"http://uploads.localhost:{server.port}/v3/files/"
    begun = await api.post("/v3/files", headers={**spoofed, "Upload-Length": "5", "Upload-Metadata": "filename YQ=="})
    assert begun.headers["location"].startswith(here)
    signed = await api.post("/v3/files/sign", headers=spoofed, json={"expires": 60})
    assert signed.json()["data"].startswith(here)
    row = (await api.get("/v3/gateways", headers=spoofed)).json()["data"]["rows"][0]
    assert row["url"] == f"http://{row['domain']}.gateways.localhost:{server.port}"
    assert (await server.client(server.key("bent"), "evil.example").get("/v3/gateways")).status_code in {404, 421}


@pytest.mark.parametrize(
    "target",
    [
        "/v3/files/private/%2e%2e/limits", "/v3/files/../pinata/keys", "/v3/./files/private", "/v3//files/private",
        "//v3/files/private", "/V3/files/private", "/v3/files/private/", "/v3/files/private;x=1",
        "/v3/files/private%00",
        "/v3/files/private%2f" + UNKNOWN, "/v3/files\\private", "/v3/files/private%20", "/v3/files/%70rivate/%2e",
        "/v3/files/private.", "/v3/groups/public/..%2f..%2fpinata%2fkeys", "/psa/pins/%2e%2e/%2e%2e/v3/pinata/keys",
    ],
)  # fmt: skip
async def test_odd_paths_lead_nowhere(server: RunningServer, api: httpx.AsyncClient, target: str) -> None:
    raw = b"GET " + target.encode() + b" HTTP/1.1\r\n@\r\n"
    for host in ("api.localhost", "uploads.localhost"):
        status, body = await send_raw(server, raw, host=host, token=server.key("bent"))
        assert status in {400, 404}, body
    name = (await api.get("/v3/gateways")).json()["data"]["rows"][0]["domain"]
    assert (await send_raw(server, raw, host=f"{name}.gateways.localhost", token=server.key("bent")))[0] in {
        400,
        401,
        404,
    }


async def test_unknown_methods_and_overrides(server: RunningServer, api: httpx.AsyncClient) -> None:
    file = await keep(server, "bent", ContentNetwork.PRIVATE, b"stays")
    path = f"/v3/files/private/{file.id}"
    for method in ("PATCH", "PROPFIND", "POST"):
        answer = await api.request(method, path)
        assert answer.status_code in {400, 404, 405}, method
        assert answer.status_code != 405 or answer.headers.get("Allow"), (method, answer.text)
    lower = f"delete {path} HTTP/1.1\r\n@\r\n".encode()  # methods are case-sensitive
    assert (await send_raw(server, lower, host="api.localhost", token=server.key("bent")))[0] in {400, 405}
    for name in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"):
        assert (await api.get(f"{path}?_method=DELETE", headers={name: "DELETE"})).status_code == 200
        assert (await api.post("/v3/groups/public?_method=GET", json={"name": "g"}, headers={name: "GET"})).json()[
            "data"
        ]
    assert (await api.get(path)).status_code == 200


async def test_queries_that_are_none(api: httpx.AsyncClient) -> None:
    """Every list and look-up gets every kind of value in every parameter."""
    values = [
        "",
        "x",
        "\u202e",
        "../..",
        "\0",
        "-1",
        "9" * 400,
        "{}",
        "[]",
        "' OR 1=1 --",
        "é" * 300,
        "NaN",
        "1e9",
        "%",
    ]
    names = (
        "limit",
        "pageToken",
        "order",
        "name",
        "cid",
        "group",
        "mimeType",
        "status",
        "sort",
        "metadata",
        "keyvalues[a]",
    )
    more = (
        "before",
        "match",
        "by",
        "start_date",
        "date_interval",
        "offset",
        "pageLimit",
        "pageOffset",
        "domain",
        "state",
    )
    for _, target in targets("GET"):
        for value in values:
            answer = await api.get(target, params=dict.fromkeys((*names, *more), value))
            assert answer.status_code < 500, (target, value, answer.text)
            assert len(answer.content) < 10_000


async def test_a_slow_form_does_not_hold_others_up(server: RunningServer, api: httpx.AsyncClient) -> None:
    lines = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(50)]
    head = f"POST /v3/files HTTP/1.1\r\nHost: uploads.localhost\r\nAuthorization: {api.headers['Authorization']}\r\n"
    form = "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000\r\n\r\n--x\r\nContent-Disp"
    for _, writer in lines:
        writer.write((head + form).encode())
    async with asyncio.timeout(20):
        assert (await api.post("/v3/files", files={"file": b"meanwhile"})).status_code == 200
    for _, writer in lines:
        writer.close()
