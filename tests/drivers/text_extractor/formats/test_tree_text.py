"""Text of HTML and OpenDocument."""

import pytest

from roost.drivers.text_extractor.formats.detection import DocumentRefused, RefusalReason
from roost.drivers.text_extractor.formats.reading import read_document
from tests.drivers.text_extractor.documents import make_open_document

CELL, END = "<table:table-cell><text:p>", "</text:p></table:table-cell>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One <b>bold</b><i> word</i>.</p><p>Two</p>", "One bold word.\nTwo"),
        ("<ul>\n <li>a</li>\n <li>b</li>\n</ul>text", "a\nb\ntext"),
        ("a<!-- no -->b<?php no ?>c<br>d", "abc\nd"),
        ("<div>  spaces \n and\tlines </div>", "spaces and lines"),
        ("<script>no()</script>a<style>no{}</style> b<template>no</template><noscript>no</noscript>", "a b"),
        ("<pre>  keep\n    this</pre><p>x", "  keep\n    this\nx"),
        ("<table><tr><th>n<th>m<tr><td><td><p>1</p><p>2</p></table>after", "n\tm\n\t1 2\nafter"),
        ("<table><tr><td>a<table><tr><td>b</table><td>c</table>", "a b\tc"),
        ("&lt;p&gt; &amp;eacute; &eacute; &#x1F600; &nbsp;|", "<p> &eacute; é 😀 \xa0|"),
        ("<title>Page</title><body><h1>Title</h1>text", "Page\nTitle\ntext"),
        ("<a href='https://example.com'>link</a><img alt='x'>", "link"),
        ("<p>not closed <b>at all", "not closed at all"),
        ("a\0b", "ab"),
        ("<!-- only a comment -->", ""),
        ("", ""),
    ],
)
def test_text_of_html(html: str, text: str) -> None:
    assert read_document(html.encode(), "a.html", "") == text


def test_encodings_of_html() -> None:
    for head, encoding in (
        ("<meta charset=koi8-r>", "koi8-r"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r"),
        ("<meta charset=koi8-r>", "utf-8"),  # it lies
        ("", "utf-16"),
    ):
        assert read_document(f"<html>{head}<p>Привет</p>".encode(encoding), "a.html", "") == "Привет"
    assert read_document("<p>Привет".encode("koi8-r"), "", "text/html; charset=KOI8-R") == "Привет"


def test_depth_of_html_is_limited() -> None:
    assert read_document(b"<div>" * 1000 + b"deep", "a.html", "") == "deep"
    with pytest.raises(DocumentRefused) as refused:
        read_document(b"<div>" * 5000 + b"deep", "a.html", "")
    assert refused.value.reason == RefusalReason.DEPTH


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<text:h>Title</text:h><text:p>One <text:span>two</text:span></text:p>", "Title\nOne two"),
        ("<text:p>a<text:tab/>b<text:line-break/>c<text:s/>d</text:p>", "a\tb\nc d"),
        (f"<table:table><table:table-row>{CELL}1{END}{CELL}2{END}</table:table-row></table:table>", "1\t2"),
        ("<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:p>kept</text:p>", "kept"),
    ],
)
def test_text_of_open_document(body: str, text: str) -> None:
    assert read_document(make_open_document(body), "", "") == text


def test_encrypted_open_document_is_refused() -> None:
    manifest = {"META-INF/manifest.xml": b"<manifest:encryption-data/>"}
    with pytest.raises(DocumentRefused) as refused:
        read_document(make_open_document("", **manifest), "", "")
    assert refused.value.reason == RefusalReason.ENCRYPTED
