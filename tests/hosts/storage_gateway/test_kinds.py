"""Types that are remembered: they are of the content, and nobody can make them another's."""

import pytest

from roost.storage.unixfs.cid import RAW, Cid
from tests.hosts.storage_gateway.visits import Visits

PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(2_000_000)


async def test_the_bytes_of_a_node_have_another_type_than_its_file(visit: Visits) -> None:
    cid = await visit.file(PICTURE)
    plain = Cid(1, RAW, cid.hash, cid.digest)
    node = await visit.get(f"/ipfs/{plain}")
    assert (node.status, node.headers["content-type"]) == (200, "application/octet-stream")
    assert len(node.body) < 1000
    assert (await visit.get(f"/ipfs/{cid}")).headers["content-type"] == "image/png"
    assert (await visit.get(f"/ipfs/{plain}")).headers["content-type"] == "application/octet-stream"


async def test_a_name_that_was_made_up_says_nothing_of_others(visit: Visits) -> None:
    cid = await visit.file(b"a text, and no page\n")
    for name, mime in (("a.html", "text/html"), ("a.css", "text/css"), ("", "text/plain"), ("a.txt", "text/plain")):
        sent = await visit.get(f"/ipfs/{cid}?filename={name}")
        assert sent.headers["content-type"].startswith(mime), name


async def test_a_name_without_an_end_is_none(visit: Visits) -> None:
    cid = await visit.file(b"body { color: red }\n")
    assert (await visit.get(f"/ipfs/{cid}?filename=css")).headers["content-type"].startswith("text/plain")
    assert (await visit.get(f"/ipfs/{cid}?filename=a.css")).headers["content-type"].startswith("text/css")


@pytest.mark.parametrize("asked", ["bytes=0-0", "bytes=0-3", "bytes=100-", "bytes=0-0,5-5"])
async def test_a_part_has_the_type_of_the_whole(visit: Visits, asked: str) -> None:
    cid = await visit.file(PICTURE)
    part = await visit.get(f"/ipfs/{cid}", range=asked)
    assert part.status == 206
    whole = await visit.get(f"/ipfs/{cid}")
    assert whole.headers["content-type"] == "image/png"
    if "," not in asked:
        assert part.headers["content-type"] == "image/png"
