"""Responses with built files and texts: ETags, gzip, and the headers that all of them have."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope

from roost.http.dashboard.static_files import StaticFile

_HEADERS: Mapping[str, str] = {
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_IMAGE_DOCUMENT = "image/svg+xml"  # would run scripts as a page of its own


def file_response(
    file: StaticFile, headers: Mapping[str, str], *, is_head: bool, policy: str = "", status: int = 200
) -> Response:
    """Return a file, or 304 if the request has it. policy: the content security policy of the response."""
    is_compressed = file.compressed is not None and _accepts_gzip(headers.get("accept-encoding", ""))
    tag = f'"{file.tag}{"-gzip" if is_compressed else ""}"'
    fields = {
        "cache-control": "public, max-age=31536000, immutable" if file.is_hashed else "no-cache",
        "content-type": file.media_type,
        "etag": tag,
        "vary": "accept-encoding",
    }
    if file.media_type == _IMAGE_DOCUMENT:
        policy = "default-src 'none'; frame-ancestors 'none'; sandbox"
    if policy:
        fields["content-security-policy"] = policy
    if _matches(headers.get("if-none-match", ""), tag):
        return make_response(304, b"", fields, is_head=True)
    if is_compressed:
        fields["content-encoding"] = "gzip"
    content = (file.compressed or b"") if is_compressed else file.content
    return make_response(status, content, fields, is_head=is_head)


def text_response(text: str, *, is_head: bool, status: int = 200) -> Response:
    headers = {"cache-control": "no-store", "content-type": "text/plain; charset=utf-8"}
    return make_response(status, text.encode(), headers, is_head=is_head)


def make_response(status: int, content: bytes, headers: Mapping[str, str], *, is_head: bool) -> Response:
    length = {} if status == 304 else {"content-length": str(len(content))}
    return Response(b"" if is_head else content, status, {**_HEADERS, **headers, **length})


def header_fields(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _accepts_gzip(accepted: str) -> bool:
    """Return whether `Accept-Encoding` admits gzip (RFC 9110, 12.5.3)."""
    for part in accepted.lower().split(","):
        name, _, quality = part.replace(" ", "").partition(";q=")
        if name == "gzip":
            return not quality or bool(quality.strip("0."))
    return False


def _matches(if_none_match: str, tag: str) -> bool:
    tags = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in tags or "*" in tags
