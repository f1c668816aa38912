"""Responses in formats for programs, which browsers save: a block, a CAR or a tar; clients verify blocks and CARs."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roost.http.storage_gateway.errors import FormatNotServed, InvalidGatewayUrl
from roost.http.storage_gateway.headers import cache_control, check_preconditions, common_headers, encode_location
from roost.http.storage_gateway.range_requests import RangeNotSatisfiable, content_range, select_ranges
from roost.http.storage_gateway.request import GatewayRequest
from roost.http.storage_gateway.resolver import ResolvedContent
from roost.http.storage_gateway.response import GatewayResponse, range_not_satisfiable
from roost.storage.content import tar_archive
from roost.storage.content.car_export import DagScope, EntityBytes, export_car
from roost.storage.content.reader import ContentReader
from roost.storage.content.tar_archive import TarArchive
from roost.web.responses import content_disposition

RAW, CAR, TAR = "application/vnd.ipld.raw", "application/vnd.ipld.car", "application/x-tar"
_PROGRAM_FORMATS = ("application/vnd.ipld.", "application/vnd.ipfs.")
"""Formats that only programs ask for; in place of another one, no other content would help them."""
_MIMES = {"raw": RAW, "car": CAR, "tar": TAR}
_NAMES = {mime: name for name, mime in _MIMES.items()}
_CAR_PARAMETERS = {"version": ("1",), "order": ("dfs", "unk"), "dups": ("n", "y")}
"""The supported values of each parameter of a CAR, the default first."""
_HTML_MIMES = frozenset({"text/html", "application/xhtml+xml"})
_MEDIA_RANGES_LIMIT = 32
"""Media ranges of `Accept` that are read."""


@dataclass(frozen=True)
class ContentFormat:
    """`raw`, `car` or `tar`. dups: a CAR repeats a block each time the traversal reaches it.

    location: the query that selects the format without a header; None if the URL already does.
    """

    name: str
    dups: bool = False
    location: str | None = None


@dataclass(frozen=True)
class _MediaRange:
    mime: str
    weight: float
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def negotiate_format(request: GatewayRequest) -> ContentFormat | None:
    """Return the requested format; None for the one that browsers show. The URL has precedence over `Accept`.

    A signed URL does not sign headers, so only its query counts. Raises InvalidGatewayUrl, FormatNotServed.
    """
    name = request.query.get("format")
    if name is not None and name not in _MIMES:
        raise FormatNotServed
    accept = "" if request.is_private else request.headers.get("accept", "").lower()
    if name is None and not any(part in accept for part in (*_PROGRAM_FORMATS, TAR)):  # as nearly always
        return None
    accepted = list(_parse_accept(accept))
    if name is not None:
        return _create_format(request, name, [one for one in accepted if one.mime == _MIMES[name]])
    supported = [one for one in accepted if one.mime in _NAMES and one.weight > 0]
    if not supported:
        wanted = [one for one in accepted if one.weight > 0]
        if wanted and all(one.mime.startswith(_PROGRAM_FORMATS) for one in wanted):
            raise FormatNotServed
        return None
    best = max(supported, key=lambda one: one.weight)
    if any(one.weight > best.weight for one in accepted):
        return None
    return _create_format(request, _NAMES[best.mime], [one for one in supported if one.mime == best.mime])


def accepts_html(request: GatewayRequest) -> bool:
    """Return whether `Accept` names HTML, as that of a browser does when it opens a page."""
    accepted = _parse_accept(request.headers.get("accept", "").lower())
    return any(one.mime in _HTML_MIMES and one.weight > 0 for one in accepted)


def _create_format(request: GatewayRequest, name: str, accepted: list[_MediaRange]) -> ContentFormat:
    """Return the first supported variant of a format; `accepted` are the variants in `Accept`."""
    if name != "car":
        return ContentFormat(name, location=_location(request, {"format": name}))
    in_query = {key: value for key in _CAR_PARAMETERS if (value := request.query.get(f"car-{key}")) is not None}
    variants = [{**one.parameters, **in_query} for one in sorted(accepted, key=lambda one: -one.weight)] or [in_query]
    for variant in variants:
        if all(variant.get(key, values[0]) in values for key, values in _CAR_PARAMETERS.items()):
            dups = {"car-dups": variant["dups"]} if "dups" in variant else {}
            return ContentFormat(name, variant.get("dups") == "y", _location(request, {"format": name, **dups}))
    raise InvalidGatewayUrl("ERR_ID:00004 - CARs are served with version=1, order=dfs, dups=n or dups=y")


def _location(request: GatewayRequest, fields: Mapping[str, str]) -> str | None:
    missing = [f"{name}={value}" for name, value in fields.items() if name not in request.query]
    return "&".join(filter(None, (request.query_string, *missing))) if missing else None


def _parse_accept(header: str) -> Iterable[_MediaRange]:
    """Parse a lower-case `Accept` (RFC 9110, 12.5.1); invalid media ranges are ignored."""
    for item in header.split(",")[:_MEDIA_RANGES_LIMIT]:
        mime, *fields = (part.strip(" \t") for part in item.split(";"))
        parameters = {name.strip(): value.strip(' \t"') for name, _, value in (one.partition("=") for one in fields)}
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            continue
        if mime and 0 <= weight <= 1:
            yield _MediaRange(mime, weight, parameters)


class TrustlessFormats:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader

    async def create_response(
        self, request: GatewayRequest, content: ResolvedContent, form: ContentFormat
    ) -> GatewayResponse:
        """Create the response. Raises InvalidGatewayUrl, InvalidByteRange, and errors of archives and content."""
        match form.name:
            case "raw":
                return await self._block(request, content, form)
            case "car":
                return await self._car(request, content, form)
            case _:
                return await self._tar(request, content, form)

    async def _block(self, request: GatewayRequest, content: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        cid = content.end.cid
        headers = _headers(request, content, form, RAW, f"{cid}.bin")
        headers |= {"ETag": f'"{cid}.raw"', "Accept-Ranges": "bytes"}
        if (response := check_preconditions(request, headers)) is not None:
            return response
        block = await self._reader.read_block(content.scope, cid)
        try:
            ranges = select_ranges(
                request.headers.get("range"), request.headers.get("if-range"), headers["ETag"], len(block)
            )
        except RangeNotSatisfiable:
            return range_not_satisfiable(len(block))
        if len(ranges) != 1:
            return GatewayResponse(200, headers, block, length=len(block))
        body = block[ranges[0].begin : ranges[0].end]
        headers["Content-Range"] = content_range(ranges[0], len(block))
        return GatewayResponse(206, headers, body, length=len(body))

    async def _car(self, request: GatewayRequest, content: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        scope, entity_bytes = _parse_dag_scope(request)
        selection = f"{content.steps[0].cid}/{request.path}/{scope}/{entity_bytes}/{form.dups}"
        digest = hashlib.sha256(selection.encode()).hexdigest()[:16]
        cid = content.end.cid
        mime = f"{CAR}; version=1; order=dfs; dups={'y' if form.dups else 'n'}"
        headers = _headers(request, content, form, mime, f"{cid}.car")
        headers |= {"ETag": f'W/"{cid}.car.{digest}"', "Accept-Ranges": "none"}
        if (response := check_preconditions(request, headers)) is not None:
            return response
        pieces = export_car(self._reader, content.scope, content.steps, scope, entity_bytes, dups=form.dups)
        return GatewayResponse(200, headers, b"" if request.head else await anext(pieces), pieces)

    async def _tar(self, request: GatewayRequest, content: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        cid = content.end.cid
        headers = _headers(request, content, form, TAR, f"{cid}.tar")
        headers |= {"ETag": f'"{cid}.tar-{tar_archive.FORMAT_VERSION}"', "Accept-Ranges": "none"}
        if (response := check_preconditions(request, headers)) is not None:
            return response
        archive = TarArchive(self._reader, content.scope, content.end)
        await archive.check()
        pieces = archive.stream()
        return GatewayResponse(200, headers, b"" if request.head else await anext(pieces), pieces)


def _parse_dag_scope(request: GatewayRequest) -> tuple[DagScope, EntityBytes | None]:
    """Parse `dag-scope` and `entity-bytes`. Raises InvalidGatewayUrl, InvalidByteRange."""
    entity_bytes = request.query.get("entity-bytes")
    try:
        scope = DagScope(request.query.get("dag-scope", DagScope.ALL))
    except ValueError:
        raise InvalidGatewayUrl("ERR_ID:00004 - dag-scope is block, entity or all") from None
    return scope, None if entity_bytes is None else EntityBytes.parse(entity_bytes)


def _headers(
    request: GatewayRequest, content: ResolvedContent, form: ContentFormat, mime: str, name: str
) -> dict[str, str]:
    headers = common_headers(request, content) | {
        "Cache-Control": cache_control(content),
        "Content-Type": mime,
        "Content-Disposition": content_disposition("attachment", request.query.get("filename") or name),
    }
    if form.location is not None:
        headers["Content-Location"] = encode_location(request.target, form.location)
    return headers
