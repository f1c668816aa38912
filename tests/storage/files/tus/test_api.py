"""Uploads in parts by the tus protocol and by the storage clients, on a real server."""

import base64
import hashlib
import itertools
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx2 as httpx
import pytest

from roost.core import clock
from roost.identity.caller import Plan
from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES
from tests.support.server import RunningServer, running

DATA = hashlib.shake_128(b"tus").digest(3_000_001)
CUTS = (0, 1, 262_144, 700_000, 1_048_576, 2_999_999, len(DATA))


def cid_of(data: bytes, profile: str = "v1") -> str:
    importer = UnixfsImporter(PROFILES[profile])
    importer.update(data)
    return str(importer.finish().cid)


def metadata(**fields: str) -> str:
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in fields.items())


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("tus"), ROOST_UPLOAD_FREE="64M") as server:
        yield server


@pytest.fixture
def uploads(server: RunningServer) -> httpx.AsyncClient:
    return server.client(server.key(), "uploads.localhost")


@pytest.fixture
def anonymous(server: RunningServer) -> httpx.AsyncClient:
    return server.client(None, "uploads.localhost")


async def begin(
    client: httpx.AsyncClient, length: int | None, path: str = "/v3/files", content: bytes | None = None, **fields: str
) -> httpx.Response:
    """Create an upload without the header `Tus-Resumable`, as the storage clients do."""
    said = {"Upload-Defer-Length": "1"} if length is None else {"Upload-Length": str(length)}
    if content is not None:
        said["Content-Type"] = "application/offset+octet-stream"
    fields = {"filename": "a.bin", **fields}
    return await client.post(path, headers={**said, "Upload-Metadata": metadata(**fields)}, content=content)


def upload_path(answer: httpx.Response) -> str:
    assert answer.status_code == 201, answer.text
    return urlsplit(answer.headers["Location"]).path


async def part(client: httpx.AsyncClient, path: str, offset: int, content: bytes, **headers: str) -> httpx.Response:
    said = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset), **headers}
    return await client.patch(path, headers=said, content=content)


async def listed(
    server: RunningServer, cid: str, network: str = "private", tenant: str = "acme"
) -> list[Mapping[str, Any]]:
    api = server.client(server.key(tenant), "api.localhost")
    answer = await api.get(f"/v3/files/{network}", params={"cid": cid})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["files"]


@pytest.mark.parametrize("profile", ["v1", "unixfs-v1-2025", "v0"])
async def test_parts_of_any_size_become_the_file(
    server: RunningServer, uploads: httpx.AsyncClient, profile: str
) -> None:
    data = profile.encode() + DATA
    begun = await begin(uploads, len(data), filename="ü.bin", cid_version=profile, keyvalues='{"a":"b"}')
    address = urlsplit(begun.headers["Location"])
    assert address.netloc == f"uploads.localhost:{server.port}"
    cuts = [*CUTS[:-1], len(data)]
    for start, end in itertools.pairwise(cuts):
        answer = await part(uploads, address.path, start, data[start:end])
        assert answer.status_code == 204, answer.text
        assert answer.headers["Upload-Offset"] == str(end)
        assert ("upload-cid" in answer.headers) == (end == len(data))
    assert answer.headers["upload-cid"] == cid_of(data, profile)
    (file,) = await listed(server, cid_of(data, profile))
    assert address.path.split("/")[-2] == file["id"]
    assert (file["name"], file["size"], file["keyvalues"]) == ("ü.bin", len(data), {"a": "b"})


async def test_a_version_may_be_in_the_address(server: RunningServer, uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 5, "/v3/files?X-Upload-Option-Cid-Version=v0", b"12345", network="public"))
    told = await uploads.head(path)
    assert told.headers["upload-cid"] == cid_of(b"12345", "v0")
    assert len(await listed(server, cid_of(b"12345", "v0"), "public")) == 1


async def test_a_blind_retry_is_told_where_the_upload_is(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 10))
    assert (await part(uploads, path, 0, b"01234")).status_code == 204
    again = await part(uploads, path, 0, b"01234")
    assert again.status_code == 409
    assert again.headers["Upload-Offset"] == "5"
    assert again.json()["error"]["code"] == 409
    assert (await part(uploads, path, 7, b"789")).status_code == 409
    last = await part(uploads, path, 5, b"56789")
    assert last.headers["upload-cid"] == cid_of(b"0123456789")
    late = await part(uploads, path, 5, b"56789")
    assert (late.status_code, late.headers["upload-cid"]) == (409, cid_of(b"0123456789"))
    assert (await part(uploads, path, 10, b"")).headers["upload-cid"] == cid_of(b"0123456789")


async def test_the_state_is_shown_to_a_holder_of_the_url(
    uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient
) -> None:
    path = upload_path(await begin(uploads, 10, filename="x"))
    told = await anonymous.head(path)
    assert told.status_code == 200
    assert told.headers["Upload-Offset"] == "0"
    assert told.headers["Upload-Length"] == "10"
    assert told.headers["Upload-Metadata"] == metadata(filename="x")
    assert told.headers["Cache-Control"] == "no-store"
    for wrong in (path[:-1] + ("0" if path[-1] != "0" else "1"), path.replace("/v3/files/", "/v3/files/0")[:-1]):
        assert (await anonymous.head(wrong)).status_code == 404


async def test_one_that_was_ended_is_gone(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 10))
    assert (await uploads.delete(path)).status_code == 204
    assert (await uploads.head(path)).status_code == 404
    assert (await part(uploads, path, 0, b"x")).status_code == 404
    assert (await uploads.delete(path)).status_code == 404


async def test_the_length_may_come_later(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, None))
    assert (await part(uploads, path, 0, b"0123")).status_code == 204
    assert (await uploads.head(path)).headers["Upload-Defer-Length"] == "1"
    assert (await part(uploads, path, 4, b"", **{"Upload-Length": "3"})).status_code == 400
    last = await part(uploads, path, 4, b"4", **{"Upload-Length": "5"})
    assert last.headers["upload-cid"] == cid_of(b"01234")


async def test_an_empty_file_is_whole_at_once(server: RunningServer, uploads: httpx.AsyncClient) -> None:
    assert (await begin(uploads, 0)).headers["upload-cid"] == cid_of(b"")
    assert len(await listed(server, cid_of(b""))) == 1


async def test_more_than_was_said_is_refused_and_what_came_before_counts(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 10))
    assert (await part(uploads, path, 0, b"0123")).status_code == 204
    assert (await part(uploads, path, 4, b"x" * 100)).status_code == 400
    assert (await part(uploads, path, 4, b"456789")).headers["upload-cid"] == cid_of(b"0123456789")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Upload-Length": "-1"}, 400),
        ({"Upload-Defer-Length": "2"}, 400),
        ({"Upload-Defer-Length": "1", "Upload-Length": "1"}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": "a b YQ=="}, 400),
        ({"Upload-Length": "x"}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": "filename !!"}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": "a YQ==,a YQ=="}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": metadata(network="elsewhere")}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": metadata(filename="a\0b")}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": metadata(cid_version="v7")}, 400),
        ({"Upload-Length": "1", "Upload-Metadata": metadata(expires_at="1")}, 400),
        ({"Upload-Length": "1", "Tus-Resumable": "0.2.2"}, 412),
        ({"Upload-Length": "999999999999999"}, 413),
    ],
)
async def test_impossible_uploads_are_refused_before_their_bytes(
    uploads: httpx.AsyncClient, headers: Mapping[str, str], status: int
) -> None:
    answer = await uploads.post("/v3/files", headers=headers)
    assert answer.status_code == status, answer.text
    if status == 412:
        assert answer.headers["Tus-Version"] == "1.0.0"


async def test_a_part_says_what_it_is(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 10))
    assert (await uploads.patch(path, headers={"Upload-Offset": "0"}, content=b"x")).status_code == 415
    headers = {"Content-Type": "application/offset+octet-stream"}
    assert (await uploads.patch(path, headers=headers, content=b"x")).status_code == 400


async def test_the_protocol_is_described(anonymous: httpx.AsyncClient) -> None:
    assert (await anonymous.options("/v3/files", headers={"Tus-Resumable": "0.2.2"})).status_code == 204
    answer = await anonymous.options("/v3/files")
    assert answer.status_code == 204
    assert answer.headers["Tus-Version"] == "1.0.0"
    assert "creation" in answer.headers["Tus-Extension"].split(",")


async def test_only_who_may_write_files_begins_one(server: RunningServer) -> None:
    for token, status in ((None, 401), ("undefined", 401), (server.key(scopes=frozenset({"org:files:read"})), 403)):
        assert (await begin(server.client(token, "uploads.localhost"), 10)).status_code == status


async def test_a_plan_bounds_size(server: RunningServer) -> None:
    free = server.client(server.key("small", Plan.FREE), "uploads.localhost")
    assert (await begin(free, 64 * 1024**2 + 1)).status_code == 413
    path = upload_path(await begin(free, None))
    assert (await part(free, path, 0, b"x" * (64 * 1024**2 + 1))).status_code == 413


async def test_a_file_that_cannot_be_ends_its_upload(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 4, group_id="00000000-0000-4000-8000-000000000000"))
    answer = await part(uploads, path, 0, b"nope")
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "Group not found")
    assert (await uploads.head(path)).status_code == 404


async def test_unfinished_ones_have_a_bound(server: RunningServer) -> None:
    many = server.client(server.key("many"), "uploads.localhost")
    statuses = [(await begin(many, 10)).status_code for _ in range(101)]
    assert statuses == [201] * 100 + [429]


async def test_one_whose_time_is_over_is_gone(
    server: RunningServer, uploads: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = upload_path(await begin(uploads, 10))
    assert (await part(uploads, path, 0, b"x")).status_code == 204
    now = clock.utc_now()
    monkeypatch.setattr(clock, "utc_now", lambda: now + timedelta(hours=24, seconds=5))
    assert (await uploads.head(path)).status_code == 404
    while await server.roost.storage.files.tus_uploads.expire():
        pass
    assert list((server.roost.core.settings.data / "uploads").iterdir()) == []


async def test_every_response_names_the_version(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    """Also a refusal: by the router, the handler or the middleware before both."""
    path = upload_path(await begin(uploads, 10))
    gone = path[:-1] + ("0" if path[-1] != "0" else "1")
    begun = {"Upload-Length": "10"}
    answers = [
        await uploads.post("/v3/files", headers={**begun, "Upload-Metadata": metadata(filename="x")}),
        await anonymous.post("/v3/files", headers=begun),
        await uploads.post("/v3/files", headers={"Upload-Length": "x"}),
        await uploads.post("/v3/files", headers={"Upload-Length": "999999999999999"}),
        await uploads.post("/v3/files", headers={"Tus-Resumable": "1.0.0"}),
        await uploads.post("/v3/files", headers={"Tus-Resumable": "0.2.2"}),
        await anonymous.post(f"/v3/files/{UUID(int=1)}?X-Signature=0", headers=begun),
        await uploads.head(path),
        await uploads.head(gone),
        await uploads.get(path),
        await part(uploads, path, 0, b"01"),
        await part(uploads, path, 0, b"01"),
        await part(uploads, gone, 0, b"01"),
        await part(uploads, path, 2, b"x" * 99),
        await uploads.patch(path, content=b"x"),
        await uploads.delete(path),
        await uploads.delete(path),
        await anonymous.options("/v3/files"),
    ]
    assert [answer.status_code for answer in answers] == [
        *(201, 401, 400, 413, 400, 412, 403),
        *(200, 404, 405, 204, 409, 404, 400, 415, 204, 404, 204),
    ]
    for answer in answers:
        assert answer.headers.get_list("Tus-Resumable") == ["1.0.0"], answer.request
        assert answer.headers.get_list("Cache-Control") == ["no-store"], answer.request


async def test_another_version_changes_nothing(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await begin(uploads, 10))
    for method in ("HEAD", "PATCH", "DELETE"):
        headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": "0", "Tus-Resumable": "2.0.0"}
        answer = await uploads.request(method, path, headers=headers, content=b"01")
        assert (answer.status_code, answer.headers["Tus-Version"]) == (412, "1.0.0")
    assert (await uploads.head(path)).headers["Upload-Offset"] == "0"


async def test_a_header_replaces_the_method(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    """For clients that cannot send PATCH or DELETE; the method that was sent counts for nothing."""
    path = upload_path(await begin(uploads, 10))
    headers = {"Content-Type": "application/offset+octet-stream", "X-HTTP-Method-Override": "PATCH"}
    for at, method in enumerate(("POST", "PUT", "DELETE", "PATCH", "GET")):
        answer = await anonymous.request(method, path, headers={**headers, "Upload-Offset": str(at)}, content=b"x")
        assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(at + 1)), method
    answer = await anonymous.head(path, headers={**headers, "Upload-Offset": "9"})
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (409, "5")
    for _ in range(2):  # on one connection: the response has the form of the method that was sent
        told = await anonymous.post(path, headers={"X-HTTP-Method-Override": "HEAD"})
        assert (told.status_code, told.headers["Upload-Offset"]) == (200, "5")
    for odd in ("patch", "PATCH, PATCH", "GET", "FOO", "\xfc"):
        answer = await anonymous.patch(path, headers=[(b"X-HTTP-Method-Override", odd.encode("latin-1"))], content=b"x")
        assert answer.status_code in {400, 405}, odd
    begun = await uploads.put("/v3/files", headers={"X-HTTP-Method-Override": "POST", "Upload-Length": "1"})
    assert begun.status_code == 201, begun.text
    assert (await anonymous.post("/v3/files", headers={"X-HTTP-Method-Override": "OPTIONS"})).status_code == 204
    deleted = {"X-HTTP-Method-Override": "DELETE"}
    assert [(await anonymous.post(path, headers=deleted)).status_code for _ in range(2)] == [204, 404]
    assert (await anonymous.post(path, headers={"X-HTTP-Method-Override": "HEAD"})).status_code == 404


async def test_a_replaced_method_is_no_way_around_a_key(server: RunningServer) -> None:
    reader = server.client(server.key(scopes=frozenset({"org:files:read"})), "uploads.localhost")
    for client, status in ((server.client(None, "uploads.localhost"), 401), (reader, 403)):
        for method in ("GET", "OPTIONS", "POST"):
            headers = {"X-HTTP-Method-Override": "POST", "Upload-Length": "1"}
            assert (await client.request(method, "/v3/files", headers=headers)).status_code == status


async def test_a_record_of_a_replaced_method_has_no_token(
    server: RunningServer, uploads: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """The access log names the route, because the URL of an upload is its credential."""
    path = upload_path(await begin(uploads, 10))
    await uploads.post(path, headers={"X-HTTP-Method-Override": "HEAD", "X-Request-Id": "overridden"})
    logged = "".join(capsys.readouterr())
    assert "overridden" in logged
    assert path.rpartition("/")[2] not in logged


@pytest.mark.parametrize(
    "header",
    [
        "filename YS5iaW4=",
        "filename YS5iaW4=,is_confidential,note ,last",
        "is_confidential , filename YS5iaW4=",
        "network cHVibGlj,filename w7wuYmlu,other_key AAE=",
    ],
)
async def test_the_metadata_come_back_as_they_were_sent(uploads: httpx.AsyncClient, header: str) -> None:
    """Without the fields that a URL adds."""
    said = {"Upload-Length": "10", "Upload-Metadata": header}
    begun = await uploads.post("/v3/files?X-Upload-Option-Cid-Version=v0", headers=said)
    assert (await uploads.head(upload_path(begun))).headers["Upload-Metadata"] == header


async def test_the_metadata_of_a_signed_url_are_the_senders(server: RunningServer, uploads: httpx.AsyncClient) -> None:
    body = {"date": int(clock.utc_now().timestamp()), "expires": 300, "network": "public", "filename": "granted"}
    signed = (await uploads.post("/v3/files/sign", json=body)).json()["data"].partition("/v3")[2]
    anonymous = server.client(None, "uploads.localhost")
    path = upload_path(await begin(anonymous, 10, f"/v3{signed}", filename="mine"))
    assert (await anonymous.head(path)).headers["Upload-Metadata"] == metadata(filename="mine")


async def test_no_metadata_are_no_header(uploads: httpx.AsyncClient) -> None:
    path = upload_path(await uploads.post("/v3/files", headers={"Upload-Length": "10"}))
    assert "Upload-Metadata" not in (await uploads.head(path)).headers


async def test_a_page_of_another_origin_reads_what_it_needs(uploads: httpx.AsyncClient) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-http-method-override"}
    preflight = await uploads.options("/v3/files", headers={"Origin": "https://other.example", **asked})
    assert (preflight.status_code, preflight.headers["Tus-Version"]) == (200, "1.0.0")
    path = upload_path(await begin(uploads, None))
    told = await uploads.head(path, headers={"Origin": "https://other.example"})
    exposed = {name.lower() for name in told.headers["Access-Control-Expose-Headers"].split(", ")}
    own = {name for name in told.headers if name.startswith(("tus-", "upload-"))}
    assert {"upload-offset", "upload-defer-length", "upload-metadata", "upload-expires"} <= own
    assert own <= exposed


async def test_the_end_of_the_time_is_said_with_every_part(uploads: httpx.AsyncClient) -> None:
    begun = await begin(uploads, 10)
    later = await part(uploads, upload_path(begun), 0, b"x")
    for answer in (begun, later):
        expires = parsedate_to_datetime(answer.headers["Upload-Expires"])
        assert answer.headers["Upload-Expires"].endswith(" GMT")  # RFC 9110, 5.6.7
        assert timedelta(hours=23) < expires - clock.utc_now() < timedelta(hours=25)
