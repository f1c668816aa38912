"""The headers that answers have in common: where content is in its graph, how long it may be kept, and what a browser
may do with it. Pure.
"""

from functools import lru_cache
from urllib.parse import quote

from roost.hosts.storage_gateway import conditions, disposition
from roost.hosts.storage_gateway.request import GatewayRequest
from roost.hosts.storage_gateway.resolver import ResolvedContent
from roost.hosts.storage_gateway.response import GatewayResponse, text
from roost.hosts.url_map import PUBLIC_CONTENT
from roost.storage.unixfs.cid import Cid

_ADDRESS = "/%?&=:@!$'()*+,;~-._"
"""What stands in an address as it is."""


@lru_cache(maxsize=4096)
def written(cid: Cid) -> str:
    """A CID as text. It stands in an answer several times, and is no short work."""
    return str(cid)


def common(asked: GatewayRequest, found: ResolvedContent) -> dict[str, str]:
    """Where the content is in its graph. The path is told as it was sent: decoded, it could end the header."""
    if asked.is_private:
        told = {"Referrer-Policy": "no-referrer"}
    else:
        told = {
            "X-Ipfs-Path": PUBLIC_CONTENT + "/".join((written(asked.cid), *map(quote, asked.path))),
            "X-Ipfs-Roots": ",".join([written(step.cid) for step in found.steps]),
            "Vary": "Accept",
        }
    if found.signature is not None:
        told["pinata-signature"] = found.signature
    return told


def settled(asked: GatewayRequest, headers: dict[str, str]) -> GatewayResponse | None:
    """The answer to a conditional request whose condition says that no content is to be sent."""
    etag = headers["ETag"]
    if conditions.is_another(asked.headers.get("if-match"), etag):
        return text(412, "The content is another one", {"ETag": etag})
    return GatewayResponse(304, headers) if conditions.is_known(asked.headers.get("if-none-match"), etag) else None


def presented(asked: GatewayRequest, mime: str, name: str) -> dict[str, str]:
    """The type, and what a browser may do with it. What could run scripts runs on the origin of its own CID only."""
    runs = disposition.runs(mime) and not asked.own_origin
    headers = {"Content-Type": disposition.content_type(mime)}
    if runs:
        headers["Content-Security-Policy"] = disposition.SANDBOX
    if runs or asked.query.get("download") == "true":
        headers["Content-Disposition"] = disposition.disposition("attachment", name)
    elif asked.query.get("filename"):
        headers["Content-Disposition"] = disposition.disposition("inline", name)
    return headers


def whose(found: ResolvedContent) -> str:
    return "public" if found.shared else "private"


def keep(found: ResolvedContent) -> str:
    """How long caches may keep what a CID names: for good, where the address will always lead to it."""
    return f"{whose(found)}, max-age=29030400, immutable" if found.lasting else f"{whose(found)}, no-cache"


def address(path: str, query: str) -> str:
    """A path and a query as they were sent, for a header."""
    return quote(f"{path}?{query}" if query else path, safe=_ADDRESS)
