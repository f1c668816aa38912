"""Documents of every format, made with other libraries than those that read them where there are any."""

import io
import zipfile
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import docx
import openpyxl
import pptx
from pypdf import PdfReader, PdfWriter

from roost.drivers.text_extractor.contract import TextExtractor

PASSWORD = "correct horse"


async def stream(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def extract(extractor: TextExtractor, content: bytes, name: str = "", mime_type: str = "") -> str:
    return await extractor.extract_text(stream(content), len(content), name, mime_type)


def make_pdf(*pages: str) -> bytes:
    """Return a PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {font} /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    return make_pdf_of([text.encode("cp1252") for text in objects])


def make_pdf_of(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of objects, of which the first is the catalog."""
    out = io.BytesIO(b"%PDF-1.7\n")
    out.seek(0, io.SEEK_END)
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return out.getvalue()


def make_pdf_bomb(size: int) -> bytes:
    """Return a PDF whose page unpacks to `size` bytes."""
    packed = zlib.compress(b" " * size, 9)
    stream_ = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font << >> >> /Contents 4 0 R >>"
    pages = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    return make_pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", pages, page, stream_])


def encrypt_pdf(content: bytes, user_password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    writer.encrypt(user_password, "owner", algorithm="AES-256")
    return _saved(writer.write)


def make_word(*paragraphs: str, table: Sequence[Sequence[str]] = ()) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        made = document.add_table(len(table), len(table[0]))
        for row, texts in zip(made.rows, table, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
    return _saved(document.save)


def make_powerpoint(*slides: tuple[str, str, str]) -> bytes:
    """Return a presentation of slides with a title, a text and notes."""
    presentation = pptx.Presentation()
    for title, text, notes in slides:
        slide: Any = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return _saved(presentation.save)


def make_excel(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return _saved(workbook.save)


def make_open_document(body: str, **more: bytes) -> bytes:
    """Return OpenDocument text with a body in XML."""
    space = "urn:oasis:names:tc:opendocument:xmlns"
    names = f'xmlns:office="{space}:office:1.0" xmlns:text="{space}:text:1.0" xmlns:table="{space}:table:1.0"'
    content = f"<office:document-content {names}><office:body><office:text>{body}</office:text></office:body>"
    files = {
        "mimetype": b"application/vnd.oasis.opendocument.text",
        "content.xml": f"{content}</office:document-content>".encode(),
    }
    return make_archive(files | more)


def make_archive(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def replace_member(document: bytes, name: str, content: bytes) -> bytes:
    """Return an archive with one file of it replaced, or added."""
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        files = {member: archive.read(member) for member in archive.namelist()}
    return make_archive(files | {name: content})


def read_member(document: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        return archive.read(name)


def _saved(save: Any) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()
