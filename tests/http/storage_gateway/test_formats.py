"""Blocks, CARs and tars, as programs ask for them."""

import io
import tarfile

import pytest

from roost.http.storage_gateway.response import ResponseAborted
from roost.storage.content.errors import TooManyBlocks
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_CBOR, DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from tests.http.asgi import Sent
from tests.http.storage_gateway import crafted_content
from tests.http.storage_gateway.gateway_env import BIG, NAMES, GatewayEnv
from tests.http.storage_gateway.test_admission import linked

FOR_GOOD = "public, max-age=29030400, immutable"
FORMS = {"raw": "application/vnd.ipld.raw", "car": "application/vnd.ipld.car", "tar": "application/x-tar"}


def blocks(sent: Sent) -> list[Cid]:
    """The CIDs of a CAR, whose blocks are what they say."""
    reader = car.CarReader()
    found = [block.cid for block in reader.feed(sent.body)]
    reader.finish()
    return found


def unpacked(sent: Sent) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    with tarfile.open(fileobj=io.BytesIO(sent.body)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            found[member.name] = None if content is None else content.read()
    return found


@pytest.mark.parametrize("form", FORMS)
async def test_all_forms_have_the_common_headers(env: GatewayEnv, form: str) -> None:
    root = await env.folder(NAMES)
    for target, fields in ((f"/ipfs/{root}?format={form}", {}), (f"/ipfs/{root}", {"accept": FORMS[form]})):
        sent = await env.get(target, **fields)
        assert sent.status == 200
        assert sent.headers["content-type"].partition(";")[0] == FORMS[form]
        suffix = "bin" if form == "raw" else form
        assert sent.headers["content-disposition"] == f'attachment; filename="{root}.{suffix}"'
        assert sent.headers["cache-control"] == FOR_GOOD
        assert sent.headers["x-ipfs-path"] == f"/ipfs/{root}"
        assert sent.headers["x-ipfs-roots"] == str(root)
        assert "accept" in sent.headers["vary"].lower()
        assert str(root) in sent.headers["etag"]
        assert sent.headers["etag"] != f'"{root}"'
        location = None if "?" in target else f"/ipfs/{root}?format={form}"
        assert sent.headers.get("content-location") == location
        head = await env.get(target, method="HEAD", **fields)
        assert (head.status, head.headers, head.body) == (200, sent.headers, b"")
        again = await env.get(target, if_none_match=sent.headers["etag"], **fields)
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("form", FORMS)
async def test_a_name_for_what_is_saved(env: GatewayEnv, form: str) -> None:
    cid = await env.file(b"hello")
    sent = await env.get(f"/ipfs/{cid}?format={form}&filename=%0D%0Aa%22/..%5C%E2%82%AC&download=false")
    assert sent.headers["content-disposition"] == "attachment; filename=\"a_.._\"; filename*=UTF-8''a%22..%E2%82%AC"


@pytest.mark.parametrize("form", FORMS)
async def test_a_path_that_leads_nowhere(env: GatewayEnv, form: str) -> None:
    root = await env.folder(NAMES)
    for path in ("nothing", "plain.txt/x"):
        sent = await env.get(f"/ipfs/{root}/{path}?format={form}")
        assert (sent.status, sent.body[:12]) == (404, b"ERR_ID:00006")


@pytest.mark.parametrize("form", FORMS)
async def test_probe_for_a_gateway_is_answered(env: GatewayEnv, form: str) -> None:
    """`bafkqaaa`, by which clients find out whether this is a gateway."""
    for method in ("GET", "HEAD"):
        sent = await env.get(f"/ipfs/bafkqaaa?format={form}", method=method)
        assert sent.status == 200
        if form == "raw":
            assert sent.body == b""
    assert (await env.get("/ipfs/bafkqaaa")).body == b""
    got = await env.get("/ipfs/bafkqaaa?format=car")
    assert got.body == car.encode_header([Cid.parse("bafkqaaa")])


@pytest.mark.parametrize("form", ["", *(f"?format={form}" for form in FORMS)])
async def test_content_that_is_in_its_cid_is_answered_and_runs_no_scripts(env: GatewayEnv, form: str) -> None:
    """A stranger can write such a CID, and so a page on the domain of the gateway."""
    page = b"<script>alert(1)</script>"
    cid = Cid(1, RAW, IDENTITY, page)
    for target, gateway in ((f"/ipfs/{cid}{form}", "mine-gate"), (f"/{form}", f"{cid}.ipfs.mine-gate")):
        sent = await env.get(target, gateway)
        assert sent.status == 200
        assert sent.headers["content-disposition"].startswith("attachment")
        if not form:
            assert sent.body == page
            assert sent.headers["content-security-policy"].startswith("sandbox")
    assert (await env.get(f"/ipfs/{Cid(1, DAG_CBOR, IDENTITY, page)}{form}")).status == 404


async def test_a_folder_in_its_cid_gives_only_content_of_the_gateway(env: GatewayEnv) -> None:
    mine = await env.file(b"<!doctype html><p>mine")
    theirs = await env.file(b"<!doctype html><p>theirs", tenant=env.storage.other_id)
    links = [PBLink(mine, "index.html", 1), PBLink(theirs, "theirs", 1)]
    node = dagpb.encode_node(links, UnixfsData(UnixfsKind.DIRECTORY))
    folder = Cid(1, DAG_PB, IDENTITY, node)
    sent = await env.get(f"/ipfs/{folder}/")
    assert (sent.status, "sandbox" in sent.headers["content-security-policy"]) == (200, True)
    assert (await env.get(f"/ipfs/{folder}/theirs")).status == 404


@pytest.mark.parametrize("accept", ["application/vnd.ipld.dag-json", "application/vnd.ipfs.ipns-record;q=0.5"])
async def test_a_format_for_programs_that_is_not_served(env: GatewayEnv, accept: str) -> None:
    cid = await env.file(b"hello")
    assert (await env.get(f"/ipfs/{cid}", accept=accept)).status == 406
    assert (await env.get(f"/ipfs/{cid}", accept=f"{accept}, */*;q=0.1")).status == 200
    assert (await env.get(f"/ipfs/{cid}", accept="image/png")).status == 200  # as ever for content


# CARs


async def test_a_car_with_what_is_there_twice(env: GatewayEnv) -> None:
    root = await env.folder({"a": b"same", "b": b"same"})
    leaf = Cid.for_block(RAW, b"same")
    once = await env.get(f"/ipfs/{root}?format=car")
    assert blocks(once) == [root, leaf]
    twice = await env.get(f"/ipfs/{root}", accept="application/vnd.ipld.car; version=1; order=dfs; dups=y")
    assert blocks(twice) == [root, leaf, leaf]
    assert once.headers["content-type"].endswith("; version=1; order=dfs; dups=n")
    assert twice.headers["content-type"].endswith("; version=1; order=dfs; dups=y")
    assert once.headers["etag"] != twice.headers["etag"]
    assert twice.headers["content-location"] == f"/ipfs/{root}?format=car&car-dups=y"
    assert (await env.get(twice.headers["content-location"])).body == twice.body


async def test_a_car_of_everything_many_times_ends(env: GatewayEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """2^50 blocks by 51: they come as long as the client takes them, and not for ever."""
    monkeypatch.setattr("roost.storage.content.car_export.MAX_BLOCKS", 500)
    root = await crafted_content.nested_folders(env, 50, ["a", "b"])
    assert len(blocks(await env.get(f"/ipfs/{root}?format=car"))) == 51
    with pytest.raises(ResponseAborted) as broken:
        await env.get(f"/ipfs/{root}?format=car&car-dups=y")
    assert isinstance(broken.value.__cause__, TooManyBlocks)


async def test_each_part_of_a_graph_has_its_own_tag(env: GatewayEnv) -> None:
    root = await env.folder({"big": BIG})
    queries = ["", "&dag-scope=entity", "&dag-scope=block", "&entity-bytes=0:10", "&entity-bytes=0:11", "&car-dups=y"]
    tags = [(await env.get(f"/ipfs/{root}/big?format=car{query}")).headers["etag"] for query in queries]
    assert len(set(tags)) == len(tags)
    assert (await env.get(f"/ipfs/{root}/big?format=car", range="bytes=0-9")).status == 200


@pytest.mark.parametrize(
    ("span", "leaves"), [("0:*", 12), ("0:0", 1), ("-1:*", 1), ("499:-2999000", 1), ("9999999:*", 0), ("5:4", 0)]
)
async def test_a_car_of_some_bytes(env: GatewayEnv, span: str, leaves: int) -> None:
    cid = await env.file(BIG)
    found = blocks(await env.get(f"/ipfs/{cid}?format=car&entity-bytes={span}&dag-scope=block"))
    assert found[0] == cid
    assert len(found) == leaves + 1


async def test_bytes_of_a_folder_are_its_list(env: GatewayEnv) -> None:
    root = await env.folder(NAMES)
    assert blocks(await env.get(f"/ipfs/{root}?format=car&entity-bytes=0:3")) == [root]
    assert (await env.get(f"/ipfs/{root}?format=car&entity-bytes=x")).status == 400


# Tars


async def test_a_folder_as_a_tar(env: GatewayEnv) -> None:
    sub, root = await env.nested({"sub dir": NAMES, "": {"big": BIG}})
    sent = await env.get(f"/ipfs/{root}?format=tar")
    below = {f"{root}/sub dir/{name}": data for name, data in NAMES.items()}
    assert unpacked(sent) == {str(root): None, f"{root}/sub dir": None, f"{root}/big": BIG, **below}
    assert sent.headers["accept-ranges"] == "none"
    assert "content-length" not in sent.headers
    part = await env.get(f"/ipfs/{root}/sub%20dir?format=tar", range="bytes=0-9")
    assert part.status == 200
    assert unpacked(part) == {str(sub): None} | {f"{sub}/{name}": data for name, data in NAMES.items()}
    assert part.headers["etag"] == (await env.get(f"/ipfs/{sub}?format=tar")).headers["etag"]
    assert max(len(message.get("body", b"")) for message in sent.messages) <= 1024 * 1024


@pytest.mark.parametrize("name", ["..", "../../x", "/etc/passwd", "a\0b", "n" * 300, "..\\x", ""])
async def test_no_tar_of_a_folder_that_would_do_harm(env: GatewayEnv, name: str) -> None:
    cid = await crafted_content.folder(env, [PBLink(crafted_content.LEAF, name, 1)])
    for method in ("GET", "HEAD"):
        sent = await env.get(f"/ipfs/{cid}?format=tar", method=method)
        assert sent.status == 400
        assert sent.headers["content-type"] == "text/plain; charset=utf-8"
        assert "etag" not in sent.headers
    assert blocks(await env.get(f"/ipfs/{cid}?format=car"))[0] == cid  # as a CAR it can be inspected


async def test_a_signed_link_gives_a_folder_if_that_was_signed(env: GatewayEnv) -> None:
    cid = await env.folder(NAMES, ContentNetwork.PRIVATE)
    sent = await env.get(await linked(env, f"/files/{cid}?format=tar"))
    assert unpacked(sent) == {str(cid): None} | {f"{cid}/{name}": data for name, data in NAMES.items()}
    assert sent.headers["cache-control"] == "private, no-cache"
    assert "x-ipfs-path" not in sent.headers
    plain = await linked(env, f"/files/{cid}")
    for accept in FORMS.values():  # what a header wants was not signed
        assert (await env.get(plain, accept=accept)).status == 404
    inside = await linked(env, f"/files/{cid}/plain.txt")
    assert (await env.get(inside, accept=FORMS["car"])).body == NAMES["plain.txt"]
