"""Headers of content responses: position in the graph, caching, and what a browser may do with the content. Pure."""

import re
from functools import lru_cache
from urllib.parse import quote

from roost.core import entity_tags
from roost.http.stack.url_map import PUBLIC_CONTENT
from roost.http.storage_gateway.request import GatewayRequest
from roost.http.storage_gateway.resolver import ResolvedContent
from roost.http.storage_gateway.response import GatewayResponse, text_response
from roost.storage.content.unixfs.cid import Cid
from roost.web.responses import content_disposition

URL_CHARACTERS = "/%?&=:@!$'()*+,;~-._"
"""Characters of a URL that need no escaping."""
_VALID_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,80}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}", re.ASCII)
_SCRIPTABLE = frozenset({"text/html", "text/xml", "text/xsl", "application/xml", "application/xml-dtd"})
_UNKNOWN = "application/octet-stream"
SANDBOX = "sandbox"
"""Content security policy that denies scripts and forms, and isolates the document in its own origin."""


def can_run_scripts(mime: str) -> bool:
    """Return whether a browser may run scripts of content of this type."""
    return mime in _SCRIPTABLE or mime.endswith("+xml") or mime.startswith(("multipart/", "message/"))


def content_type(mime: str) -> str:
    mime = mime.lower()
    if _VALID_MIME.fullmatch(mime) is None:
        return _UNKNOWN
    return f"{mime}; charset=utf-8" if mime.startswith("text/") else mime


@lru_cache(maxsize=4096)
def cid_text(cid: Cid) -> str:
    """Return a CID as text; encoding it for each of several headers would be slow."""
    return str(cid)


def common_headers(request: GatewayRequest, content: ResolvedContent) -> dict[str, str]:
    """Return the headers of all content; the path is quoted, because a decoded one could end its header."""
    if request.is_private:
        headers = {"Referrer-Policy": "no-referrer"}
    else:
        headers = {
            "X-Ipfs-Path": PUBLIC_CONTENT
            + "/".join((cid_text(request.cid), *map(quote, request.path), *([""] if request.slash else []))),
            "X-Ipfs-Roots": ",".join([cid_text(step.cid) for step in content.steps]),
            "Vary": "Accept",
        }
    if content.signature is not None:
        headers["pinata-signature"] = content.signature
    return headers


def check_preconditions(request: GatewayRequest, headers: dict[str, str]) -> GatewayResponse | None:
    """Return the response to a conditional request that needs no content: 304 or 412."""
    etag = headers["ETag"]
    if entity_tags.is_precondition_failed(request.headers.get("if-match"), etag):
        return text_response(412, "The content is another one", {"ETag": etag})
    is_current = entity_tags.is_not_modified(request.headers.get("if-none-match"), etag)
    return GatewayResponse(304, headers) if is_current else None


def presentation_headers(request: GatewayRequest, mime: str, name: str) -> dict[str, str]:
    """Return type and disposition. Content that can run scripts may do so only on the origin of its own CID."""
    is_unsafe = can_run_scripts(mime) and not request.is_site
    headers = {"Content-Type": content_type(mime)}
    if is_unsafe:
        headers["Content-Security-Policy"] = SANDBOX
    if is_unsafe or request.query.get("download") == "true":
        headers["Content-Disposition"] = content_disposition("attachment", name)
    elif request.query.get("filename"):
        headers["Content-Disposition"] = content_disposition("inline", name)
    return headers


def cache_control(content: ResolvedContent, *, is_derived: bool = False) -> str:
    """Return `Cache-Control`: immutable if the URL always leads to this CID.

    is_derived: for what this server derives from the content; a new version may derive something else.
    """
    lifetime = "max-age=604800, stale-while-revalidate=2678400" if is_derived else "max-age=29030400, immutable"
    return f"{'public' if content.shared else 'private'}, {lifetime if content.lasting else 'no-cache'}"


def encode_location(path: str, query: str) -> str:
    """Join a raw path and query for a header."""
    return quote(f"{path}?{query}" if query else path, safe=URL_CHARACTERS)
