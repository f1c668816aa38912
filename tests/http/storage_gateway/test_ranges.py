"""Parts of content, as clients ask for them and as hostile ones do."""

import email
import email.policy
from email.message import EmailMessage

import pytest

from roost.storage.content.model import ContentNetwork
from tests.http.asgi import Sent
from tests.http.storage_gateway.gateway_env import BIG, NAMES, GatewayEnv
from tests.http.storage_gateway.test_admission import linked


def parse_ranges(sent: Sent) -> list[tuple[str, str, bytes]]:
    """Range, type and bytes of each part, read by somebody else's parser."""
    head = f"Content-Type: {sent.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + sent.body, policy=email.policy.HTTP)
    assert isinstance(message, EmailMessage)
    assert not message.defects
    parts = [part for part in message.iter_parts() if isinstance(part, EmailMessage)]
    return [(p["content-range"], p["content-type"].replace('"', ""), _bytes(p)) for p in parts]


def _bytes(part: EmailMessage) -> bytes:
    found = part.get_payload(decode=True)
    assert isinstance(found, bytes)
    return found


async def test_several_parts_come_in_one_answer(env: GatewayEnv) -> None:
    cid = await env.file(NAMES["plain.txt"] * 300_000)
    content = NAMES["plain.txt"] * 300_000
    range_header = f"bytes=5-9, 0-1,262140-262150 , {len(content)}-, -3"
    sent = await env.get(f"/ipfs/{cid}", range=range_header)
    assert sent.status == 206
    assert sent.headers["content-length"] == str(len(sent.body))
    assert sent.headers["etag"] == f'"{cid}"'
    assert "content-range" not in sent.headers
    size = len(content)
    spans = [(5, 10), (0, 2), (262140, 262151), (size - 3, size)]
    assert parse_ranges(sent) == [
        (f"bytes {begin}-{end - 1}/{size}", "text/plain; charset=utf-8", content[begin:end]) for begin, end in spans
    ]
    again = await env.get(f"/ipfs/{cid}", range=range_header)
    assert again.body == sent.body


async def test_a_part_is_of_the_type_of_the_whole(env: GatewayEnv) -> None:
    """Whatever it begins with itself."""
    words = b"plain words " * 1000
    cid = await env.file(words + b"\x89PNG\r\n\x1a\n" + words)
    part, whole = (
        await env.get(f"/ipfs/{cid}", range=f"bytes={len(words)}-"),
        await env.get(f"/ipfs/{cid}"),
    )
    assert part.body.startswith(b"\x89PNG")
    assert part.headers["content-type"] == whole.headers["content-type"] == "text/plain; charset=utf-8"


async def test_parts_larger_than_a_piece_come_whole(env: GatewayEnv) -> None:
    sent = await env.get(f"/ipfs/{await env.file(BIG)}", range="bytes=1000000-2000000,0-999999")
    assert [data for _, _, data in parse_ranges(sent)] == [BIG[1_000_000:2_000_001], BIG[:1_000_000]]
    assert max(len(message.get("body", b"")) for message in sent.messages) <= 1024 * 1024


@pytest.mark.parametrize(
    "range_header",
    [
        "bytes=0-,0-,0-,0-",
        "bytes=" + ",".join("0-" for _ in range(1300)),
        "bytes=" + ",".join(f"{n}-{n}" for n in range(100)),
        "bytes=0-2999999,1-3000000",
        "bytes=0-1,5-2",
    ],
)
async def test_many_and_overlapping_parts_are_not_cut(env: GatewayEnv, range_header: str) -> None:
    sent = await env.get(f"/ipfs/{await env.file(BIG)}", range=range_header)
    assert (sent.status, sent.headers["content-length"], sent.body) == (200, str(len(BIG)), BIG)


async def test_of_several_parts_those_that_are_there(env: GatewayEnv) -> None:
    cid = await env.file(b"12345")
    one = await env.get(f"/ipfs/{cid}", range="bytes=9-10,1-2")
    assert (one.status, one.body, one.headers["content-range"]) == (206, b"23", "bytes 1-2/5")
    none = await env.get(f"/ipfs/{cid}", range="bytes=9-10,5-,-0")
    assert (none.status, none.headers["content-range"]) == (416, "bytes */5")
    empty = await env.get(f"/ipfs/{await env.file(b'')}", range="bytes=0-")
    assert (empty.status, empty.headers["content-range"]) == (416, "bytes */0")


async def test_a_page_in_parts_runs_no_more_than_a_whole_one(env: GatewayEnv) -> None:
    cid = await env.folder(NAMES)
    sent = await env.get(f"/ipfs/{cid}/page.html", range="bytes=0-5,7-9")
    assert sent.headers["content-type"].startswith("multipart/byteranges; boundary=")
    assert sent.headers["content-security-policy"] == "sandbox"
    assert sent.headers["content-disposition"].startswith("attachment;")
    assert [mime for _, mime, _ in parse_ranges(sent)] == ["text/html; charset=utf-8"] * 2


async def test_head_and_conditions_hold_for_parts(env: GatewayEnv) -> None:
    cid = await env.file(BIG)
    got = await env.get(f"/ipfs/{cid}", range="bytes=0-1,5-6")
    head = await env.get(f"/ipfs/{cid}", range="bytes=0-1,5-6", method="HEAD")
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")
    known = await env.get(f"/ipfs/{cid}", range="bytes=0-1,5-6", if_none_match=f'"{cid}"')
    assert (known.status, known.body) == (304, b"")
    other = await env.get(f"/ipfs/{cid}", range="bytes=0-1,5-6", if_range="Sat, 21 Nov 2026 12:00:00 GMT")
    assert (other.status, other.body) == (200, BIG)


async def test_another_content_than_is_meant(env: GatewayEnv) -> None:
    cid = await env.file(b"hello")
    assert (await env.get(f"/ipfs/{cid}", if_match=f'"x", "{cid}"')).body == b"hello"
    assert (await env.get(f"/ipfs/{cid}", if_match="*")).status == 200
    for target in (f"/ipfs/{cid}", f"/ipfs/{cid}?format=raw", f"/ipfs/{cid}?format=tar"):
        sent = await env.get(target, if_match='"x"', if_none_match="*", range="bytes=0-0")
        assert sent.status == 412
        assert b"hello" not in sent.body


async def test_dates_say_nothing_of_what_never_changes(env: GatewayEnv) -> None:
    cid = await env.file(b"hello")
    late, early = "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"
    sent = await env.get(f"/ipfs/{cid}", if_modified_since=late, if_unmodified_since=early)
    assert (sent.status, sent.body) == (200, b"hello")
    assert "last-modified" not in sent.headers


async def test_damage_in_a_part_ends_the_answer_before_it_begins(env: GatewayEnv) -> None:
    pack, trees = await env.storage.keep(BIG, network=ContentNetwork.PUBLIC)
    env.storage.damage(pack, 10)
    sent = await env.get(f"/ipfs/{trees[0].cid}?filename=a.bin", range="bytes=0-20,2000000-2000001")
    assert sent.status == 500


async def test_a_signed_link_gives_parts_too(env: GatewayEnv) -> None:
    cid = await env.file(BIG, ContentNetwork.PRIVATE)
    sent = await env.get(await linked(env, f"/files/{cid}"), range="bytes=0-1,5-6")
    assert [data for _, _, data in parse_ranges(sent)] == [BIG[:2], BIG[5:7]]
    assert sent.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("range_header", "status", "begin", "end"),
    [("bytes=1-3", 206, 1, 4), ("bytes=-2", 206, -2, None), ("bytes=0-1,3-4", 200, 0, None), ("bytes=99-", 416, 0, 0)],
)
async def test_a_block_in_parts(env: GatewayEnv, range_header: str, status: int, begin: int, end: int | None) -> None:
    cid = await env.file(b"hello")
    sent = await env.get(f"/ipfs/{cid}?format=raw", range=range_header)
    assert sent.status == status
    if status != 416:
        assert sent.body == b"hello"[begin:end]
        assert sent.headers["content-length"] == str(len(sent.body))
