"""Content-Type, Content-Disposition and nosniff of content, so that browsers never guess a type."""

import pytest

from roost.http.storage_gateway import headers


@pytest.mark.parametrize(
    ("mime", "header"),
    [
        ("text/plain", "text/plain; charset=utf-8"),
        ("TEXT/HTML", "text/html; charset=utf-8"),
        ("image/svg+xml", "image/svg+xml"),
        ("application/vnd.a-b.c+json", "application/vnd.a-b.c+json"),
        ("", "application/octet-stream"),
        ("text", "application/octet-stream"),
        ("text/", "application/octet-stream"),
        ("/plain", "application/octet-stream"),
        ("text/plain; charset=x", "application/octet-stream"),
        ("text/\u00e9", "application/octet-stream"),
        ("text/plain\r\nX-Evil: 1", "application/octet-stream"),
        ("text/" + "x" * 200, "application/octet-stream"),
        ("*/*", "application/octet-stream"),
    ],
)
def test_types_become_content_type_headers(mime: str, header: str) -> None:
    assert headers.content_type(mime) == header


@pytest.mark.parametrize(
    ("mime", "runs"),
    [
        *((mime, True) for mime in ("text/html", "text/xml", "application/xml", "image/svg+xml", "text/xsl")),
        *(
            (mime, True)
            for mime in ("application/xhtml+xml", "multipart/mixed", "message/rfc822", "application/xml-dtd")
        ),
        *((mime, False) for mime in ("text/plain", "image/png", "application/pdf", "text/css", "application/json", "")),
    ],
)
def test_types_that_may_run_scripts_are_known(mime: str, runs: bool) -> None:
    assert headers.can_run_scripts(mime) is runs
