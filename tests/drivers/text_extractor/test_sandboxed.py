"""Hostile documents in the sandbox: each ends with a clear error in bounded time, and nothing reaches the next one."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from roost.core.problem import Problem
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.text_extractor import sandboxed
from roost.drivers.text_extractor.contract import (
    SOURCE_LIMIT,
    DocumentTooLarge,
    ExtractionUnavailable,
    InvalidDocument,
    TooManyDocuments,
    UnsupportedDocument,
)
from roost.drivers.text_extractor.sandboxed import SandboxedExtractor
from tests.conformance.runtimes import until
from tests.conformance.sandboxes import SANDBOXES
from tests.drivers.text_extractor.documents import (
    PASSWORD,
    encrypt_pdf,
    extract,
    make_archive,
    make_excel,
    make_open_document,
    make_pdf,
    make_pdf_bomb,
    make_pdf_of,
    make_powerpoint,
    make_word,
    read_member,
    replace_member,
)

pytestmark = pytest.mark.container
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b0 "ha">'
    + b"".join(b'<!ENTITY b%d "%s">' % (number, b"&b%d;" % (number - 1) * 20) for number in range(1, 9))
    + b"]>"
)


@pytest.fixture(params=SANDBOXES)
async def texts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SandboxedExtractor]:
    made = SandboxedExtractor(request.param(tmp_path))
    yield made
    await made.close()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def make_entity_bomb(document: bytes, member: str, tag: bytes) -> bytes:
    """Return a document with a text that expands to 50 GB by entities."""
    content = read_member(document, member)
    head, _, tail = content.partition(tag)
    return replace_member(document, member, LAUGHS + head.partition(b"?>")[2] + tag + b"&b8;" + tail)


def sheet_of(row: str) -> bytes:
    """Return a workbook whose only sheet has this XML as its rows."""
    document = make_excel({"Sheet": [["x"]]})
    name = "xl/worksheets/sheet1.xml"
    content = f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{row}'
    return replace_member(document, name, f"{content}</sheetData></worksheet>".encode())


async def test_every_format_is_read(texts: SandboxedExtractor) -> None:
    for content, name, text in (
        (make_pdf("first page", "second page"), "a.pdf", "first page\n\nsecond page"),
        (encrypt_pdf(make_pdf("open to all"), ""), "b.pdf", "open to all"),
        (make_word("Hello", table=[["a", "b"]]), "c.docx", "Hello\na\tb"),
        (make_powerpoint(("Title", "Body", "Notes")), "d.pptx", "Title\nBody\nNotes"),
        (make_excel({"Sheet": [["name", 3.5]]}), "e.xlsx", "Sheet\nname\t3.5"),
        (make_open_document("<text:p>Hello</text:p>"), "f.odt", "Hello"),
        (b"<p>caf\xe9</p><script>x</script>", "g.html", "café"),
        (make_word("by its content"), "h.pdf", "by its content"),
    ):
        assert await extract(texts, content, name) == text


BOMBS: dict[str, tuple[Callable[[], bytes], type[Problem], str]] = {
    "zip with a large file": (
        lambda: make_archive({"[Content_Types].xml": b"", "word/document.xml": bytes(300 * 1024**2)}),
        DocumentTooLarge,
        "unpacks to more than 268,435,456 bytes",
    ),
    "zip with many files": (
        lambda: make_archive({f"word/{number}": b"" for number in range(20_000)}),
        DocumentTooLarge,
        "unpacks",
    ),
    "zip in a zip": (
        lambda: make_archive({"inner.zip": make_archive({"word/document.xml": bytes(1000)})}),
        UnsupportedDocument,
        "Only text",
    ),
    "zip that lies about a size": (
        lambda: lie_about_size(make_word("x" * 1000)),
        InvalidDocument,
        "damaged",
    ),
    "page that unpacks to 400 MB": (lambda: make_pdf_bomb(400 * 1024**2), InvalidDocument, "damaged"),
    "text of 64 MiB": (lambda: b"x " * (SOURCE_LIMIT // 2), DocumentTooLarge, "more than 4,194,304 characters"),
    "text of 64 MiB in Word": (
        lambda: replace_member(
            (made := make_word("x")),
            "word/document.xml",
            read_member(made, "word/document.xml").replace(b">x<", b">" + b"xy " * 3_000_000 + b"<"),
        ),
        DocumentTooLarge,
        "characters",
    ),
    "entities in Word": (
        lambda: make_entity_bomb(make_word("x"), "word/document.xml", b"<w:t>"),
        InvalidDocument,
        "damaged",
    ),
    "entities in a sheet": (lambda: sheet_of("<row><c>&b8;</c></row>"), InvalidDocument, "damaged"),
    "cyclic pages": (
        lambda: make_pdf_of([CATALOG, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"]),
        InvalidDocument,
        "damaged",
    ),
    "pages without end": (
        lambda: make_pdf_of([CATALOG, *(nested_pages(number) for number in range(2, 3000))]),
        InvalidDocument,
        "damaged",
    ),
    "encrypted PDF": (lambda: encrypt_pdf(make_pdf("x"), PASSWORD), InvalidDocument, "encrypted"),
    "encrypted Word": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le"),
        InvalidDocument,
        "encrypted",
    ),
    "truncated PDF": (lambda: make_pdf("x" * 500)[:300], InvalidDocument, "damaged"),
    "truncated Word": (lambda: make_word("x")[:-200], InvalidDocument, "damaged"),
    "deep HTML": (lambda: b"<html>" + b"<div>" * 1_000_000, InvalidDocument, "nested too deeply"),
    "archive": (lambda: make_archive({"a.txt": b"x"}), UnsupportedDocument, "Only text"),
    "old Word": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), UnsupportedDocument, "Only text"),
    "rich text": (lambda: b"{\\rtf1\\ansi text}", UnsupportedDocument, "Only text"),
}


def lie_about_size(document: bytes) -> bytes:
    """Return an archive whose directory says that `word/document.xml` has 10 bytes."""
    entry = document.rindex(b"word/document.xml") - 46
    return document[: entry + 24] + (10).to_bytes(4, "little") + document[entry + 28 :]


def nested_pages(number: int) -> bytes:
    return b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (number + 1)


async def test_hostile_documents_end_with_a_clear_error(texts: SandboxedExtractor) -> None:
    for kind, (make, error, message) in BOMBS.items():
        content, began = make(), time.monotonic()
        with pytest.raises(Problem) as refused:
            await extract(texts, content)
        assert (kind, type(refused.value)) == (kind, error)
        assert message in refused.value.message, kind
        assert time.monotonic() - began < 20, kind
        assert await extract(texts, b"next") == "next", kind


async def test_wide_and_long_sheets_end(texts: SandboxedExtractor) -> None:
    wide = "".join(f'<c r="{column}1"><v>1</v></c>' for column in ("A", "ZZZ"))
    assert await extract(texts, sheet_of(f'<row r="1">{wide}</row>')) == f"Sheet\n1{chr(9) * 18277}1"
    cells = "<c><v>7</v></c>" * 300_000
    assert (await extract(texts, sheet_of(f"<row>{cells}</row>"))).count("7") == 300_000
    with pytest.raises(InvalidDocument):
        await extract(texts, sheet_of('<row r="1"><c r="ZZZZ1"><v>1</v></c></row>'))


async def test_a_document_that_takes_too_long_ends_with_its_worker(
    texts: SandboxedExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await extract(texts, b"first")
    (worker,) = texts._workers.idle
    monkeypatch.setattr(sandboxed, "TIME_LIMIT_SECONDS", 1.0)
    with pytest.raises(DocumentTooLarge, match="takes more than 1 s"):
        await extract(texts, sheet_of('<row r="1"/><row r="900000000"><c><v>1</v></c></row>'))
    assert not worker.is_alive()
    monkeypatch.undo()
    assert await extract(texts, b"next") == "next"


async def test_memory_of_a_document_is_limited(texts: SandboxedExtractor) -> None:
    with pytest.raises(DocumentTooLarge, match="takes too much memory"):
        await extract(texts, b"<html>" + b"<p>" * 20_000_000)
    assert await extract(texts, b"next") == "next"


async def test_a_worker_that_ended_while_it_was_idle_is_replaced(texts: SandboxedExtractor) -> None:
    await extract(texts, b"first")
    (idle,) = texts._workers.idle
    os.kill(idle.pid, signal.SIGKILL)
    await until(lambda: not idle.is_alive())
    assert await extract(texts, b"next") == "next"


async def kill_worker(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


async def kill_reader(pid: int) -> None:
    """Kill the process of the request, which waits for the rest of its source."""
    await until(lambda: [state(child) for child in children(pid)] == ["S"])
    os.kill(children(pid)[0], signal.SIGKILL)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("kill", [kill_worker, kill_reader])
async def test_a_worker_that_ends_while_it_reads_is_replaced(
    texts: SandboxedExtractor, kill: Callable[[int], Awaitable[None]]
) -> None:
    await extract(texts, b"first")
    (worker,) = texts._workers.idle

    async def source() -> AsyncIterator[bytes]:
        yield b"begin"
        await kill(worker.pid)
        yield b"end"

    with pytest.raises(InvalidDocument, match=r"^The document is damaged$"):
        await texts.extract_text(source(), 8, "a.txt", "")
    assert not worker.is_alive()
    assert await extract(texts, b"next") == "next"


async def test_the_server_goes_on_while_a_document_is_read(texts: SandboxedExtractor) -> None:
    sheet = make_excel({"Sheet": [[number, "text"] for number in range(20_000)]})
    longest, last = 0.0, time.monotonic()
    task = asyncio.create_task(extract(texts, sheet))
    while not task.done():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert (await task).count("text") == 20_000
    assert longest < 0.5


async def test_too_many_documents_wait(texts: SandboxedExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts._workers, "_max_waiting", 3)
    results = await asyncio.gather(*(extract(texts, b"x") for _ in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [str] * 3 + [TooManyDocuments] * 2


async def test_a_worker_that_cannot_be_started_tells_tenants_no_reason(tmp_path: Path) -> None:
    texts = SandboxedExtractor(BwrapSandbox(tmp_path, bwrap=tmp_path / "missing"))
    with pytest.raises(ExtractionUnavailable, match=r"^Documents cannot be read at the moment$"):
        await extract(texts, b"x")


@pytest.mark.parametrize(
    "answer",
    [
        b"\n",
        b"no json\n",
        b"[]\n",
        b'{"refused": "unknown"}\n',
        b'{"refused": []}\n',
        b"{}\n\xff\xfe",
        b"{}\n\xed\xa0\x80",
        b"{}\na\0b",
        b"{}\na\rb",
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_forged_answer_is_no_text(answer: bytes) -> None:
    with pytest.raises(InvalidDocument):
        sandboxed._parse_answer(answer)


async def test_a_source_that_stands_still_gives_its_worker_up(
    texts: SandboxedExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stand_still() -> AsyncIterator[bytes]:
        yield b"beginning"
        await asyncio.Event().wait()

    monkeypatch.setattr(sandboxed, "_TRANSFER_SECONDS", 0.2)
    with pytest.raises(ExtractionUnavailable):
        await texts.extract_text(stand_still(), 20, "a.txt", "")
    assert not texts._workers.idle
    assert await extract(texts, b"next") == "next"
