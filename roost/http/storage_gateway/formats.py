"""Responses in formats for programs, which browsers save: a block, a CAR or a tar; clients verify blocks and CARs."""

import hashlib

from roost.http.storage_gateway import range_requests
from roost.http.storage_gateway.byte_ranges import content_range
from roost.http.storage_gateway.content_negotiation import CAR, RAW, TAR, ContentFormat
from roost.http.storage_gateway.errors import InvalidGatewayUrl
from roost.http.storage_gateway.headers import cache_control, check_preconditions, common_headers, encode_location
from roost.http.storage_gateway.range_requests import RangeNotSatisfiable
from roost.http.storage_gateway.request import GatewayRequest
from roost.http.storage_gateway.resolver import ResolvedContent
from roost.http.storage_gateway.response import GatewayResponse, range_not_satisfiable
from roost.storage.content import tar_archive
from roost.storage.content.car_export import DagScope, EntityBytes, export_car
from roost.storage.content.reader import ContentReader
from roost.storage.content.tar_archive import TarArchive
from roost.web.content_disposition import content_disposition


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
            ranges = range_requests.select_ranges(
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
