"""Content in other forms than a browser shows: a block and a CAR, which their reader can check, and a tar. They are for
programs: a browser saves them.
"""

import hashlib

from roost.hosts.storage_gateway import conditions, disposition, headers
from roost.hosts.storage_gateway.byte_ranges import content_range
from roost.hosts.storage_gateway.conditions import ByteRange, RangeNotSatisfiable
from roost.hosts.storage_gateway.content_negotiation import CAR, RAW, TAR, ContentFormat
from roost.hosts.storage_gateway.errors import InvalidGatewayUrl
from roost.hosts.storage_gateway.request import GatewayRequest
from roost.hosts.storage_gateway.resolver import ResolvedContent
from roost.hosts.storage_gateway.response import GatewayResponse, unsatisfiable
from roost.storage.content import tar_archive
from roost.storage.content.car_export import DagScope, EntityBytes, export_car
from roost.storage.content.reader import ContentReader
from roost.storage.content.tar_archive import TarArchive


class TrustlessFormats:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader

    async def answer(self, asked: GatewayRequest, found: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        """Raises InvalidUrl, Malformed, InvalidSpan, NotArchivable, TooManyMembers, ContentMissing, ContentDamaged."""
        match form.name:
            case "raw":
                return await self._block(asked, found, form)
            case "car":
                return await self._car(asked, found, form)
            case _:
                return await self._tar(asked, found, form)

    async def _block(self, asked: GatewayRequest, found: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        cid = found.end.cid
        told = _told(asked, found, form, RAW, f"{cid}.bin") | {"ETag": f'"{cid}.raw"', "Accept-Ranges": "bytes"}
        if (known := headers.settled(asked, told)) is not None:
            return known
        block = await self._reader.read_block(found.scope, cid)
        try:
            parts = conditions.parts(
                asked.headers.get("range"), asked.headers.get("if-range"), told["ETag"], len(block)
            )
        except RangeNotSatisfiable:
            return unsatisfiable(len(block))
        if len(parts) != 1:
            return GatewayResponse(200, told, block, length=len(block))
        return _part(told, block, parts[0])

    async def _car(self, asked: GatewayRequest, found: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        scope, span = _chosen(asked)
        what = f"{found.steps[0].cid}/{asked.path}/{scope}/{span}/{form.dups}"
        cid = found.end.cid
        mime = f"{CAR}; version=1; order=dfs; dups={'y' if form.dups else 'n'}"
        told = _told(asked, found, form, mime, f"{cid}.car")
        told |= {"ETag": f'W/"{cid}.car.{_digest(what)}"', "Accept-Ranges": "none"}
        if (known := headers.settled(asked, told)) is not None:
            return known
        pieces = export_car(self._reader, found.scope, found.steps, scope, span, dups=form.dups)
        return GatewayResponse(200, told, b"" if asked.head else await anext(pieces), pieces)

    async def _tar(self, asked: GatewayRequest, found: ResolvedContent, form: ContentFormat) -> GatewayResponse:
        cid = found.end.cid
        told = _told(asked, found, form, TAR, f"{cid}.tar")
        told |= {"ETag": f'"{cid}.tar-{tar_archive.FORMAT_VERSION}"', "Accept-Ranges": "none"}
        if (known := headers.settled(asked, told)) is not None:
            return known
        made = TarArchive(self._reader, found.scope, found.end)
        await made.check()
        pieces = made.stream()
        return GatewayResponse(200, told, b"" if asked.head else await anext(pieces), pieces)


def _chosen(asked: GatewayRequest) -> tuple[DagScope, EntityBytes | None]:
    """What of a graph is asked for. Raises InvalidUrl, InvalidSpan."""
    span = asked.query.get("entity-bytes")
    try:
        scope = DagScope(asked.query.get("dag-scope", DagScope.ALL))
    except ValueError:
        raise InvalidGatewayUrl("ERR_ID:00004 - dag-scope is block, entity or all") from None
    return scope, None if span is None else EntityBytes.parse(span)


def _part(told: dict[str, str], block: bytes, part: ByteRange) -> GatewayResponse:
    body = block[part.begin : part.end]
    return GatewayResponse(206, told | {"Content-Range": content_range(part, len(block))}, body, length=len(body))


def _told(asked: GatewayRequest, found: ResolvedContent, form: ContentFormat, mime: str, name: str) -> dict[str, str]:
    told = headers.common(asked, found) | {
        "Cache-Control": headers.keep(found),
        "Content-Type": mime,
        "Content-Disposition": disposition.disposition("attachment", asked.query.get("filename") or name),
    }
    if form.location is not None:
        told["Content-Location"] = headers.address(asked.target, form.location)
    return told


def _digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]
