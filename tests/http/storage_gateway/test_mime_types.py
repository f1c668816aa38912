"""The types of files: found once, and never out of a name alone."""

import pytest

from roost.http.storage_gateway.content_responses import MimeTypes
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentStat
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import V0
from tests.storage.storage_env import StorageEnv, open_storage_env


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
def env(database, tmp_path) -> StorageEnv:
    return open_storage_env(database, tmp_path)


async def stats(env: StorageEnv, *files: bytes) -> list[ContentStat]:
    _, trees = await env.keep(*files)
    return [await env.reader.stat(env.scope, tree.cid) for tree in trees]


async def kind(env: StorageEnv, data: bytes, name: str = "", *, at_hand: bool = True) -> str:
    (file,) = await stats(env, data)
    return await MimeTypes(env.reader).detect(env.scope, file, name, data if at_hand else b"")


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
        (b"<!doctype html>", "a.txt", "text/plain"),  # the extension decides: its source is shown as text
        (b"<bold move", "", "text/plain"),
        (b'<svg xmlns="x">', "", "image/svg+xml"),
        (b"<?xml version='1.0'?>\n<!-- drawn -->\n<svg>", "a.bin", "image/svg+xml"),
        (b"<svgx>", "", "text/plain"),
        (b"<?xml version='1.0'?><a/>", "a.xml", "text/xml"),
        (bytes(range(256)), "a.txt", "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("at_hand", [True, False])
async def test_kinds_of_files_have_mime_types(
    env: StorageEnv, data: bytes, name: str, mime: str, at_hand: bool
) -> None:
    found = await kind(env, data, name, at_hand=at_hand)
    assert found in {mime, mime.replace("text/xml", "application/xml")}


async def test_a_name_that_says_a_type(env: StorageEnv) -> None:
    assert await kind(env, b"hello", "data:text/evil,x") == "text/plain"


async def test_the_first_bytes_are_enough(env: StorageEnv) -> None:
    """A range that was asked for may begin with less than what is looked at."""
    (file,) = await stats(env, b"<!doctype html>" + bytes(5000))
    kinds = MimeTypes(env.reader)
    assert await kinds.detect(env.scope, file, "", b"<!doc") == await MimeTypes(env.reader).detect(
        env.scope, file, "", b""
    )


async def test_it_is_found_once_for_every_ending(env: StorageEnv) -> None:
    (file,) = await stats(env, b"hello")
    kinds, nowhere = MimeTypes(env.reader), ContentScope(ContentNetwork.PUBLIC)
    assert await kinds.detect(env.scope, file, "a.css", b"hello") == "text/css"
    assert await kinds.detect(nowhere, file, "b.CSS", b"") == "text/css"  # remembered: nothing was read
    assert await kinds.detect(env.scope, file, "a.txt", b"hello") == "text/plain"


async def test_a_node_and_its_bytes_are_two(env: StorageEnv) -> None:
    """What is stored for a small file under the older profile is a node around its bytes."""
    trees: list[DagTree]
    _, trees = await env.keep(b"hello", profile=V0)
    node = await env.reader.stat(env.scope, trees[0].cid)
    kinds = MimeTypes(env.reader)
    assert await kinds.detect(env.scope, node, "", b"hello") == "text/plain"
    assert node.size == 5
