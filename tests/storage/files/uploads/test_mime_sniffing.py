"""Media types: from the content, for texts from the name; an invalid type is ignored."""

import mimetypes
import re
from typing import Any

import puremagic.main as puremagic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import car
from roost.storage.content.unixfs.cid import RAW, Cid
from roost.storage.files.uploads import mime_sniffing

ZIP = b"PK\3\4\x14" + bytes(25) + b"[Content_Types].xml" + bytes(20)
CAR = car.encode_header([Cid.for_block(RAW, b"")])
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
TYPE = re.compile(r"[a-z]+/[A-Za-z0-9.+_-]+", re.ASCII)


@pytest.mark.parametrize(
    ("head", "name", "mime"),
    [
        (b"", "a", "text/plain"),
        (b"hello", "a", "text/plain"),
        (b"hello", "a.txt", "text/plain"),
        (b"hello", "a.HTML", "text/html"),
        (b"hello", "a.css", "text/css"),
        (b"hello", "a.js", "text/javascript"),
        (b"hello", "a.csv", "text/csv"),
        (b"hello", "a.md", "text/markdown"),
        (b"{}", "a.json", "application/json"),
        (b'  {"a": 1}', "a", "application/json"),
        (b"[1]", "a.unknown", "application/json"),
        (b"<svg/>", "a.svg", "image/svg+xml"),
        ("grüß dich".encode(), "a", "text/plain"),
        ("\u6f22".encode()[:2], "a", "text/plain"),  # a character that the end of the head cuts
        (PNG, "a", "image/png"),
        (PNG, "a.html", "image/png"),
        (PNG, "a.json", "image/png"),
        (b"GIF89a" + bytes(20), "a", "image/gif"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(20), "a", "image/jpeg"),
        (b"\xff\xd8\xff\xdb" + bytes(20), "a.txt", "image/jpeg"),
        (b"\x1f\x8b\x08\0", "a", "application/x-gzip"),
        (b"I I am a text", "a", "text/plain"),
        (b"DOS and don'ts", "a.note", "text/plain"),
        (b"%PDF-1.7\n", "a", "application/pdf"),
        (b'<svg xmlns="x">', "a", "image/svg+xml"),
        (b"<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'x'>\n<svg>", "a", "image/svg+xml"),
        (b"<?xml version='1.0'?><!-- a > b --><!-- c -->\n<?style x?><svg:svg>", "a", "image/svg+xml"),
        (b"<?xml version='1.0'?><!DOCTYPE svg [\n<!ENTITY a 'b'>\n]>\n<svg>", "a", "image/svg+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><svg>", "a", "image/svg+xml"),
        (b"<!-- no <svg> --><html>", "a", "text/html"),
        (b"<?xml version='1.0'?><rss><svg>", "a", "application/xml"),
        (b"\xef\xbb\xbf<!doctype HTML>", "a", "text/html"),
        (b"<html>caf\xe9", "a", "text/html"),
        (b"<p>", "a.md", "text/markdown"),
        (b"[section]\na = 1\n", "a", "text/plain"),
        (b"{curly} text", "a", "text/plain"),
        (b"RIFF\x24\0\0\0WEBPVP8X" + bytes(20), "a", "image/webp"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif" + bytes(20), "a", "image/avif"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1" + bytes(20), "a", "image/heif"),
        (b"\0\0\0\x18ftypiso5\0\0\0\0dash" + bytes(20), "a", "video/mp4"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0" + bytes(20), "a", "video/quicktime"),
        (b"\0\0\0\x14ftypM4A \0\0\0\0" + bytes(20), "a", "audio/mp4"),
        (b"\xff\xfb\x90\x64" + bytes(20), "a", "audio/mpeg"),
        (b"ID3\x03\0\0\0\0\0\0" + bytes(20), "a", "audio/mpeg"),
        (b"\0asm\1\0\0\0", "a", "application/wasm"),
        (b"wOFF\0\1\0\0" + bytes(20), "a", "font/woff"),
        (b"wOF2\0\1\0\0" + bytes(20), "a", "font/woff2"),
        (b"\0\1\0\0\0\x0a\0\x80" + bytes(20), "a", "font/ttf"),
        (b"OTTO\0\x0a" + bytes(20), "a", "font/otf"),
        (ZIP, "a", "application/zip"),
        (ZIP, "a.zip", "application/zip"),
        (ZIP, "a.unknown", "application/zip"),
        (ZIP, "a.XLSX", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (ZIP[:30] + b"mimetypeapplication/epub+zip", "a", "application/epub+zip"),
        (b"PK\5\6" + bytes(18), "a", "application/zip"),
        (bytes(257) + b"ustar\x0000" + bytes(250), "a", "application/x-tar"),
        (CAR, "a", "application/vnd.ipld.car"),
        (bytes(range(256)), "a", mime_sniffing.UNKNOWN),
        (b"\xff\xfe\xfd", "a.txt", mime_sniffing.UNKNOWN),
        (b"text\0with a zero", "a.txt", mime_sniffing.UNKNOWN),
    ],
)
def test_types_are_found_by_content_and_name(head: bytes, name: str, mime: str) -> None:
    assert mime_sniffing.mime_type(head, name) == mime


@pytest.mark.parametrize(
    "name",
    ["data:text/evil,x", "data:text/\u00e9\u6f22,x", "data:;base64,x", "data:text/html;charset=x,y", "x;text/html"],
)
def test_a_name_is_not_a_type(name: str) -> None:
    assert mime_sniffing.mime_type(b"hello", name) == "text/plain"


@given(st.binary(max_size=300), st.text(max_size=30))
def test_any_content_under_any_name_has_a_type(head: bytes, name: str) -> None:
    assert TYPE.fullmatch(mime_sniffing.mime_type(head, name))


@pytest.mark.parametrize(
    ("wanted", "found", "allowed"),
    [
        (["image/png"], "image/png", True),
        (["image/*"], "image/png", True),
        (["*"], "image/png", True),
        (["*/*"], "image/png", True),
        (["text/plain", "image/*"], "image/webp", True),
        (["IMAGE/PNG"], "image/png", True),
        (["Image/*"], "image/png", True),
        (["image/jpg"], "image/jpeg", True),
        (["text/plain; charset=UTF-8"], "text/plain", True),
        (["Directory"], "directory", True),
        (["image/png"], "image/jpeg", False),
        (["image"], "image/png", False),
        (["*/png"], "image/png", False),
        (["image/p*"], "image/png", False),
        (["text/*"], "textual/plain", False),
        ([], "image/png", False),
        (["directory"], "directory", True),
        (["*", "*/*", "image/*"], "directory", False),
    ],
)
def test_which_types_are_allowed(wanted: list[str], found: str, allowed: bool) -> None:
    assert mime_sniffing.matches_types(wanted, found) is allowed


def test_every_type_that_content_can_have_is_allowed_by_its_name() -> None:
    signatures: Any = (*puremagic.magic_header_array, *puremagic.extension_only_array)
    found = {mime_sniffing.UNKNOWN, "text/plain", "application/json", *mimetypes.types_map.values()}
    found |= {one.mime_type for one in signatures} - {""}
    assert "application/vnd.ms-excel.sheet.macroEnabled.12" in found
    for mime in found:
        assert mime_sniffing.matches_types([mime], mime), mime
        assert mime_sniffing.matches_types([mime.upper()], mime), mime
