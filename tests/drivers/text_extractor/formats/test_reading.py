"""Word, PowerPoint and Excel documents, with what their libraries do not read, too."""

from datetime import date

from roost.drivers.text_extractor.formats.reading import read_document
from tests.drivers.text_extractor.documents import make_excel, make_powerpoint, make_word, read_member, replace_member

BODY = "word/document.xml"


def with_body(xml: str) -> bytes:
    """Return a Word document with XML after its first paragraph."""
    document = make_word("First")
    return replace_member(document, BODY, read_member(document, BODY).replace(b"</w:p>", f"</w:p>{xml}".encode(), 1))


def text_of(document: bytes) -> str:
    return read_document(document, "", "")


def test_paragraphs_and_tables_are_in_order() -> None:
    document = make_word("Before", "", "Tab\there", table=[["a", "b"], ["", "two\nlines"]])
    assert text_of(document) == "Before\nTab\there\na\tb\n\ttwo lines"


def test_text_that_python_docx_leaves_out() -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    frame = "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>"
    for xml, text in (
        (f"<w:sdt><w:sdtContent><w:p>{run.format('control')}</w:p></w:sdtContent></w:sdt>", "control"),
        (f"<w:p><w:ins>{run.format('inserted')}</w:ins>{deleted}</w:p>", "inserted"),
        (f"<w:p>{frame.format(run.format('framed'))}</w:p>", "framed"),
        (f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>{run.format('indented')}</w:p>", "indented"),
        ("<w:p><w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>", "a-b\nc"),
        (f"<w:p><w:moveFrom>{run.format('away')}</w:moveFrom>{run.format('here')}</w:p>", "here"),
    ):
        assert text_of(with_body(xml)) == f"First\n{text}"


def test_footnotes_follow_the_body() -> None:
    document = make_word("Body")
    name = "word/_rels/document.xml.rels"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    relation = f'<Relationship Id="rId99" Type="{kind}" Target="footnotes.xml"/></Relationships>'
    document = replace_member(
        document, name, read_member(document, name).replace(b"</Relationships>", relation.encode())
    )
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    note = f'<w:footnotes xmlns:w="{space}"><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnotes>'
    assert text_of(replace_member(document, "word/footnotes.xml", note.encode())) == "Body\n\nA note"


def test_slides_have_their_notes() -> None:
    slides = (("One", "Body\nlines", "What to say"), ("Two", "More", ""))
    assert text_of(make_powerpoint(*slides)) == "One\nBody\nlines\nWhat to say\n\nTwo\nMore"


def test_sheets_have_their_values() -> None:
    day = date(2026, 1, 2)
    rows = [["name", "amount", None], [None, None, None], ["a", 1.5, True], [None, day, None]]
    text = "Stock\nname\tamount\na\t1.5\tTrue\n\t2026-01-02 00:00:00\n\nEmpty\n\nMore\n7"
    assert text_of(make_excel({"Stock": rows, "Empty": [], "More": [[7]]})) == text


def test_dimensions_that_a_sheet_claims_are_ignored() -> None:
    document, name = make_excel({"Sheet": [["x"]]}), "xl/worksheets/sheet1.xml"
    content = read_member(document, name)
    assert b'<dimension ref="A1' in content
    head, _, tail = content.partition(b"<dimension ref=")
    claimed = head + b'<dimension ref="A1:XFD1048576"/>' + tail.partition(b">")[2]
    assert text_of(replace_member(document, name, claimed)) == "Sheet\nx"
