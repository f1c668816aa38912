"""The contract of text extractors, over the fake and the real one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.drivers.text_extractor.contract import (
    SOURCE_LIMIT,
    TEXT_LIMIT,
    DocumentTooLarge,
    InvalidDocument,
    TextExtractor,
    UnsupportedDocument,
)
from roost.drivers.text_extractor.fake import FakeTextExtractor
from roost.drivers.text_extractor.sandboxed import SandboxedExtractor
from tests.conformance.sandboxes import SANDBOXES
from tests.drivers.text_extractor.documents import extract, stream


@pytest.fixture(params=["fake", *SANDBOXES])
async def texts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TextExtractor]:
    made = FakeTextExtractor() if request.param == "fake" else SandboxedExtractor(request.param(tmp_path))
    yield made
    await made.close()


async def test_text_files_stay_as_they_are(texts: TextExtractor) -> None:
    for content, name, mime_type in (
        ("# Title\n\n- a list\n\n    code\n", "notes.md", "text/markdown"),
        ('{"name": "Zoë",\n\t"ids": [1, 2]}', "data.json", "application/json"),
        ("name,amount\ngrößer,3\n例,4", "table.csv", "text/csv"),
        ("no name 😀", "", ""),
    ):
        assert await extract(texts, content.encode(), name, mime_type) == content.strip("\n")


async def test_a_source_may_come_in_any_pieces(texts: TextExtractor) -> None:
    content = "Grüße\n".encode() * 1000
    pieces = [content[start : start + 7] for start in range(0, len(content), 7)]
    assert await texts.extract_text(stream(*pieces, b""), len(content), "a.txt", "") == content.decode().strip()


async def test_a_text_is_normal(texts: TextExtractor) -> None:
    for content, text in (
        ("\ufeffwith a mark", "with a mark"),
        ("e\u0301 e\u0301", "é é"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("a\x1b[1mb\x85c\td  ", "a[1mb\nc\td"),
        ("a\n\n\n\n\nb", "a\n\nb"),
    ):
        assert await extract(texts, content.encode() + b"\n" + b"end " * 100) == text + "\n" + ("end " * 100).strip()


async def test_an_empty_document_has_no_text(texts: TextExtractor) -> None:
    assert await texts.extract_text(stream(), 0, "empty.txt", "text/plain") == ""
    assert await extract(texts, b" \n\t\n ") == ""


async def test_binary_files_are_unsupported(texts: TextExtractor) -> None:
    for content in (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), bytes(range(256)) * 4, b"\0" * 1000):
        with pytest.raises(UnsupportedDocument):
            await extract(texts, content, "text.txt", "text/plain")


async def test_a_document_with_too_many_bytes_is_not_read(texts: TextExtractor) -> None:
    source = stream(b"x")
    with pytest.raises(DocumentTooLarge):
        await texts.extract_text(source, SOURCE_LIMIT + 1, "a.txt", "")
    assert await anext(source) == b"x"


async def test_a_text_has_a_limit_of_characters(texts: TextExtractor) -> None:
    assert len(await extract(texts, b"x" * TEXT_LIMIT)) == TEXT_LIMIT
    with pytest.raises(DocumentTooLarge):
        await extract(texts, b"x" * (TEXT_LIMIT + 1))


async def test_a_source_that_fails_does_not_affect_the_next(texts: TextExtractor) -> None:
    async def fail() -> AsyncIterator[bytes]:
        yield b"beginning"
        raise ConnectionError("the disk is gone")

    with pytest.raises(ConnectionError, match="the disk is gone"):
        await texts.extract_text(fail(), 100, "a.txt", "")
    assert await extract(texts, b"next") == "next"


async def test_a_source_of_another_size_is_invalid(texts: TextExtractor) -> None:
    for size in (0, 5, 7):
        with pytest.raises(InvalidDocument):
            await texts.extract_text(stream(b"abc", b"def"), size, "a.txt", "")
    assert await extract(texts, b"next") == "next"


async def test_documents_at_the_same_time_do_not_mix(texts: TextExtractor) -> None:
    found = await asyncio.gather(*(extract(texts, f"document {number} ".encode() * 500) for number in range(12)))
    assert found == [(f"document {number} " * 500).strip() for number in range(12)]


async def test_close_is_idempotent(texts: TextExtractor) -> None:
    await texts.close()
    assert await extract(texts, b"again") == "again"
    await texts.close()
    await texts.close()
