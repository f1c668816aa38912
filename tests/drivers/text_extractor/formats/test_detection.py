"""The format of a document: content first, then name, then MIME type."""

import pytest

from roost.drivers.text_extractor.formats.detection import DocumentFormat, DocumentRefused, RefusalReason, detect_format
from tests.drivers.text_extractor.documents import (
    make_archive,
    make_excel,
    make_open_document,
    make_pdf,
    make_powerpoint,
    make_word,
)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (make_pdf("x"), DocumentFormat.PDF),
        (b"junk before the header\n" + make_pdf("x"), DocumentFormat.PDF),
        (make_word("x"), DocumentFormat.WORD),
        (make_powerpoint(("a", "b", "")), DocumentFormat.POWERPOINT),
        (make_excel({"Sheet": [[1]]}), DocumentFormat.EXCEL),
        (make_open_document(""), DocumentFormat.OPEN_DOCUMENT),
        (b"<!DOCTYPE html><p>x", DocumentFormat.HTML),
        (b'\xef\xbb\xbf\n<?xml version="1.0"?>\n<!-- a --><html>', DocumentFormat.HTML),
        (b"plain", DocumentFormat.TEXT),
        (b"", DocumentFormat.TEXT),
    ],
)
def test_content_decides_first(content: bytes, found: DocumentFormat) -> None:
    for name in ("", "a.txt", "a.pdf", "a.docx"):
        assert detect_format(content, name, "application/x-unknown") is found


@pytest.mark.parametrize(
    ("name", "mime_type", "found"),
    [
        ("page.html", "", DocumentFormat.HTML),
        ("PAGE.HTM", "text/plain", DocumentFormat.HTML),
        ("page.xhtml", "", DocumentFormat.HTML),
        ("notes.md", "text/html", DocumentFormat.TEXT),
        ("page", "text/html; charset=utf-8", DocumentFormat.HTML),
        ("", "Application/XHTML+XML", DocumentFormat.HTML),
        ("html", "text/plain", DocumentFormat.TEXT),
        ("", "", DocumentFormat.TEXT),
    ],
)
def test_name_and_type_decide_about_markup(name: str, mime_type: str, found: DocumentFormat) -> None:
    assert detect_format(b"<h1>Title</h1>", name, mime_type) is found


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (make_archive({"a.txt": b"x"}), RefusalReason.UNSUPPORTED),
        (make_archive({}), RefusalReason.UNSUPPORTED),
        (make_archive({"[Content_Types].xml": b"", "other/a.xml": b""}), RefusalReason.UNSUPPORTED),
        (make_archive({"mimetype": b"application/epub+zip"}), RefusalReason.UNSUPPORTED),
        (make_archive({f"word/{number}": b"" for number in range(10_001)}), RefusalReason.UNPACKED_SIZE),
        (make_word("x")[:1000], RefusalReason.DAMAGED),
        (b"PK\x03\x04", RefusalReason.DAMAGED),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), RefusalReason.UNSUPPORTED),
        (b"{\\rtf1 text}", RefusalReason.UNSUPPORTED),
        (b"GIF89a", RefusalReason.UNSUPPORTED),
        (b"\x1f\x8b\x08", RefusalReason.UNSUPPORTED),
    ],
)
def test_other_content_is_refused(content: bytes, reason: RefusalReason) -> None:
    with pytest.raises(DocumentRefused) as refused:
        detect_format(content, "a.txt", "text/plain")
    assert refused.value.reason == reason


def test_encrypted_archives_are_refused() -> None:
    content = bytearray(make_archive({"mimetype": b"application/vnd.oasis.opendocument.text"}))
    content[content.index(b"PK\x01\x02") + 8] |= 1  # a flag of the file in the directory
    with pytest.raises(DocumentRefused) as refused:
        detect_format(bytes(content), "", "")
    assert refused.value.reason == RefusalReason.ENCRYPTED
