"""The types of files: found once, and never out of a name alone."""

import pytest

from roost.hosts.storage_gateway.mime_types import MimeTypes
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentStat
from roost.storage.unixfs.importer import DagTree
from roost.storage.unixfs.profile import V0
from tests.storage.house import House, house


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
def place(database, tmp_path) -> House:
    return house(database, tmp_path)


async def stats(place: House, *files: bytes) -> list[ContentStat]:
    _, trees = await place.keep(*files)
    return [await place.reader.stat(place.scope, tree.cid) for tree in trees]


async def kind(place: House, data: bytes, name: str = "", *, at_hand: bool = True) -> str:
    (file,) = await stats(place, data)
    return await MimeTypes(place.reader).of(place.scope, file, name, data if at_hand else b"")


@pytest.mark.parametrize(
    ("data", "name", "mime"),
    [
        (b"hello", "", "text/plain"),
        (b"hello", "a.txt", "text/plain"),
        (b"hello", "a.css", "text/css"),
        (b"", "a", "text/plain"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "a.html", "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "photo", "image/jpeg"),
        (b"<!doctype html><p>", "", "text/html"),
        (b"  \n<HTML lang=de>", "page", "text/html"),
        (b"<script>alert(1)</script>", "a.unknown", "text/html"),
        (b"<!-- a note --> <b>", "", "text/html"),
        (b"<!doctype html>", "a.txt", "text/plain"),  # whoever names it so wants to see what is written
        (b"<bold move", "", "text/plain"),
        (b'<svg xmlns="x">', "", "image/svg+xml"),
        (b"<?xml version='1.0'?>\n<!-- drawn -->\n<svg>", "a.bin", "image/svg+xml"),
        (b"<svgx>", "", "text/plain"),
        (b"<?xml version='1.0'?><a/>", "a.xml", "text/xml"),
        (bytes(range(256)), "a.txt", "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("at_hand", [True, False])
async def test_kinds(place: House, data: bytes, name: str, mime: str, at_hand: bool) -> None:
    found = await kind(place, data, name, at_hand=at_hand)
    assert found in {mime, mime.replace("text/xml", "application/xml")}


async def test_a_name_that_says_a_type(place: House) -> None:
    assert await kind(place, b"hello", "data:text/evil,x") == "text/plain"


async def test_the_first_bytes_are_enough(place: House) -> None:
    """A range that was asked for may begin with less than what is looked at."""
    (file,) = await stats(place, b"<!doctype html>" + bytes(5000))
    kinds = MimeTypes(place.reader)
    assert await kinds.of(place.scope, file, "", b"<!doc") == await MimeTypes(place.reader).of(
        place.scope, file, "", b""
    )


async def test_it_is_found_once_for_every_ending(place: House) -> None:
    (file,) = await stats(place, b"hello")
    kinds, nowhere = MimeTypes(place.reader), ContentScope(ContentNetwork.PUBLIC)
    assert await kinds.of(place.scope, file, "a.css", b"hello") == "text/css"
    assert await kinds.of(nowhere, file, "b.CSS", b"") == "text/css"  # remembered: nothing was read
    assert await kinds.of(place.scope, file, "a.txt", b"hello") == "text/plain"


async def test_a_node_and_its_bytes_are_two(place: House) -> None:
    """What is stored for a small file under the older profile is a node around its bytes."""
    trees: list[DagTree]
    _, trees = await place.keep(b"hello", profile=V0)
    node = await place.reader.stat(place.scope, trees[0].cid)
    kinds = MimeTypes(place.reader)
    assert await kinds.of(place.scope, node, "", b"hello") == "text/plain"
    assert node.size == 5
