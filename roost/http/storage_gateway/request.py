"""Parse a request to a storage gateway. Paths are decoded segment by segment. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.types import Scope

from roost.http.stack.url_map import PAID_CONTENT, PRIVATE_CONTENT, PUBLIC_CONTENT
from roost.http.storage_gateway.errors import InvalidGatewayUrl
from roost.storage.content.unixfs.cid import IDENTITY, Cid
from roost.storage.content.unixfs.errors import MalformedContent
from roost.web.url_rule import address_of

TOKEN_FIELD = "pinataGatewayToken"  # noqa: S105 - the name of a field
PATH_DEPTH_LIMIT = 64
"""Segments of a path below the root."""
_FIELDS_LIMIT = 64


@dataclass(frozen=True)
class GatewayRequest:
    """A parsed request. own_origin: the host belongs to this CID alone, so its scripts may run.

    names_cid: the URL names the CID; else a registered domain does, and may name another one later.
    is_private: the content is private. is_paid: it must be paid for, else its URL is signed.
    path: names below the root. slash: the path ends with a slash. target: the raw path, with that of the gateway.
    """

    gateway: str
    head: bool
    cid: Cid
    path: Sequence[str]
    slash: bool
    own_origin: bool
    names_cid: bool
    is_private: bool
    is_paid: bool
    target: str
    query_string: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    ip: str | None

    @property
    def is_site(self) -> bool:
        """Whether the host belongs to this CID alone. An identity CID is no site: any author of a URL can write one."""
        return self.own_origin and self.cid.hash != IDENTITY

    @property
    def token(self) -> str | None:
        """The access token of the gateway."""
        return self.query.get(TOKEN_FIELD) or self.headers.get("x-pinata-gateway-token")

    @property
    def origin(self) -> str | None:
        """`Origin`, or else `Referer`."""
        return self.headers.get("origin") or self.headers.get("referer")

    @property
    def method(self) -> str:
        return "HEAD" if self.head else "GET"

    @property
    def url(self) -> str:
        """The full URL, which a signed URL signs."""
        query = f"?{self.query_string}" if self.query_string else ""
        return f"http://{self.headers.get('host', '')}{self.target}{query}"

    @property
    def name(self) -> str:
        """The file name: `?filename=`, or the last segment of the path."""
        return self.query.get("filename") or (self.path[-1] if self.path else "")


def parse_request(scope: Scope) -> GatewayRequest:
    """Parse an ASGI scope. Raises InvalidGatewayUrl."""
    host = address_of(scope).host
    target = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    cid, rest, prefix = host.cid, target, PUBLIC_CONTENT
    if cid is None:
        prefix = next((one for one in (PRIVATE_CONTENT, PAID_CONTENT) if target.startswith(one)), PUBLIC_CONTENT)
        cid, slash, rest = target.removeprefix(prefix).partition("/")
        rest = slash + rest
    query = scope["query_string"].decode("latin-1")
    return GatewayRequest(
        gateway=host.gateway or "",
        head=scope["method"] == "HEAD",
        cid=_cid(cid),
        path=parse_path(rest),
        slash=rest.endswith("/"),
        own_origin=host.cid is not None,
        names_cid=host.cid is None or host.domain is None,
        is_private=prefix != PUBLIC_CONTENT,
        is_paid=prefix == PAID_CONTENT,
        target=scope.get("root_path", "") + target,
        query_string=query,
        query=_fields(query),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])},
        ip=scope["client"][0] if scope.get("client") else None,
    )


def parse_path(path: str) -> Sequence[str]:
    """Decode the segments of a raw path. Raises InvalidGatewayUrl for empty ones, `.`, `..` and invalid UTF-8."""
    body = path.removeprefix("/").removesuffix("/")
    if not body:
        if path not in {"", "/"}:
            raise InvalidGatewayUrl
        return ()
    try:
        names = [unquote_to_bytes(segment).decode() for segment in body.split("/")]
    except UnicodeDecodeError:
        raise InvalidGatewayUrl from None
    if any(name in {"", ".", ".."} for name in names):
        raise InvalidGatewayUrl
    return names


@lru_cache(maxsize=4096)
def _cid(text: str) -> Cid:
    try:
        return Cid.parse(text)
    except MalformedContent:
        raise InvalidGatewayUrl from None


def _fields(query: str) -> Mapping[str, str]:
    """Parse a query; the first value of each name counts."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_FIELDS_LIMIT)
    except ValueError:
        raise InvalidGatewayUrl from None
    return dict(reversed(pairs))
