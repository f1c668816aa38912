"""What is answered with: a file or parts of one, a folder's page, or other forms. Everything is bound to its CID by the
entity tag, and verified by the reader before it goes out.
"""

from collections.abc import Sequence
from contextlib import aclosing

from roost.drivers.image.contract import ImageTooLarge, InvalidImage, UnsupportedImage
from roost.hosts.storage_gateway import (
    conditions,
    content_negotiation,
    directory_listing,
    headers,
    image_options,
    image_resizer,
)
from roost.hosts.storage_gateway.byte_ranges import MultipartByteRanges, content_range
from roost.hosts.storage_gateway.conditions import ByteRange, RangeNotSatisfiable
from roost.hosts.storage_gateway.errors import InvalidGatewayUrl, PathNotFound
from roost.hosts.storage_gateway.formats import TrustlessFormats
from roost.hosts.storage_gateway.image_resizer import ImageResizer
from roost.hosts.storage_gateway.mime_types import MimeTypes
from roost.hosts.storage_gateway.request import GatewayRequest
from roost.hosts.storage_gateway.resolver import ResolvedContent
from roost.hosts.storage_gateway.response import GatewayResponse, text, unsatisfiable
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.unixfs.dagpb import PBLink, UnixfsKind

_FOLDERS = frozenset({UnixfsKind.DIRECTORY, UnixfsKind.SHARD})
_INDEX = "index.html"


class ContentResponses:
    def __init__(self, reader: ContentReader, pictures: ImageResizer) -> None:
        self._reader = reader
        self._pictures = pictures
        self._kinds = MimeTypes(reader)
        self._forms = TrustlessFormats(reader)

    async def answer(self, asked: GatewayRequest, found: ResolvedContent) -> GatewayResponse:
        """Raises InvalidUrl, NotThere, ContentMissing, ContentDamaged, BlobFailed, and what Forms raises."""
        if not asked.own_origin and "service-worker" in asked.headers:  # it would answer for all that is here
            raise InvalidGatewayUrl("ERR_ID:00004 - Service workers live on the origin of their own CID")
        form = content_negotiation.wanted(asked)
        if form is not None:
            return await self._forms.answer(asked, found, form)
        if found.end.kind in _FOLDERS:
            return await self._folder(asked, found)
        return await self._file(asked, found, found.end, asked.name)

    async def _file(
        self, asked: GatewayRequest, found: ResolvedContent, file: ContentStat, name: str
    ) -> GatewayResponse:
        if (
            file.size is None
            or file.kind not in {UnixfsKind.FILE, UnixfsKind.RAW}
            or (asked.slash and asked.path and file is found.end)
        ):
            raise PathNotFound
        if image_options.is_wished(asked.query):
            try:
                return await self._image(asked, found, file)
            except (InvalidImage, ImageTooLarge, UnsupportedImage):
                if not image_options.original_instead(asked.query):
                    raise
        told = _bound(asked, found, f'"{headers.written(file.cid)}"')
        told["Accept-Ranges"] = "bytes"
        if (known := headers.settled(asked, told)) is not None:
            return known
        try:
            parts = conditions.parts(asked.headers.get("range"), asked.headers.get("if-range"), told["ETag"], file.size)
        except RangeNotSatisfiable:
            return unsatisfiable(file.size)
        if len(parts) > 1:
            return await self._several(asked, found, file, name, told, parts)
        begin, end = (parts[0].begin, parts[0].end) if parts else (0, file.size)
        body = self._reader.stream_file(found.scope, file, begin, end)
        first = b"" if asked.head else await anext(body, b"")
        mime = await self._kinds.of(found.scope, file, name, first if begin == 0 else b"")
        told |= headers.presented(asked, mime, name or headers.written(file.cid))
        if parts:
            told["Content-Range"] = content_range(parts[0], file.size)
        rest = body
        if len(first) == end - begin:
            rest = await body.aclose()
        return GatewayResponse(206 if parts else 200, told, first, rest, end - begin)

    async def _several(
        self,
        asked: GatewayRequest,
        found: ResolvedContent,
        file: ContentStat,
        name: str,
        told: dict[str, str],
        parts: Sequence[ByteRange],
    ) -> GatewayResponse:
        mime = await self._kinds.of(found.scope, file, name, b"")
        told |= headers.presented(asked, mime, name or headers.written(file.cid))
        ranges = MultipartByteRanges(told["ETag"], told["Content-Type"], parts, file.size or 0)
        told["Content-Type"] = ranges.content_type
        body = ranges.body(lambda part: self._reader.stream_file(found.scope, file, part.begin, part.end))
        return GatewayResponse(206, told, b"" if asked.head else await anext(body), body, ranges.length)

    async def _image(self, asked: GatewayRequest, found: ResolvedContent, file: ContentStat) -> GatewayResponse:
        wanted = image_options.wanted(asked.query, asked.headers.get("accept", ""))
        told = _bound(asked, found, f'"{image_resizer.name_of(file, wanted)}"')
        if (known := headers.settled(asked, told)) is not None:
            return known
        made = await self._pictures.make(found.scope, file, wanted)
        return GatewayResponse(
            200, told | headers.presented(asked, made.mime, asked.name), made.data, length=len(made.data)
        )

    async def _folder(self, asked: GatewayRequest, found: ResolvedContent) -> GatewayResponse:
        if asked.is_private:  # a link is one file's: there is no way from it to another
            raise PathNotFound
        if not asked.slash and not (asked.own_origin and not asked.path):
            location = headers.address(f"{asked.target}/", asked.query_string)
            return text(301, "Moved", headers.common(asked, found) | {"Location": location})
        try:
            index = (await self._reader.resolve(found.scope, found.end, [_INDEX]))[-1]
        except ContentNotFound:
            return await self._page(asked, found)
        return await self._file(asked, found, index, _INDEX)

    async def _page(self, asked: GatewayRequest, found: ResolvedContent) -> GatewayResponse:
        etag = f'"DirIndex-{directory_listing.VERSION}_CID-{found.end.cid}"'
        keep = "max-age=604800, stale-while-revalidate=2678400" if found.lasting else "no-cache"
        told = headers.common(asked, found) | {
            "ETag": etag,
            "Cache-Control": f"{headers.whose(found)}, {keep}",
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": directory_listing.POLICY,
        }
        if (known := headers.settled(asked, told)) is not None:
            return known
        entries, more = await self._some(found)
        body = directory_listing.page(found.steps[0].cid, asked.path, entries, more=more)
        return GatewayResponse(200, told, body, length=len(body))

    async def _some(self, found: ResolvedContent) -> tuple[Sequence[PBLink], bool]:
        """The entries that a page shows, and whether there are more."""
        entries: list[PBLink] = []
        room = directory_listing.MOST_SIGNS
        async with aclosing(self._reader.list_entries(found.scope, found.end)) as links:
            async for link in links:
                room -= len(link.name)
                if room < 0 or len(entries) == directory_listing.MOST:
                    return entries, True
                entries.append(link)
        return entries, False


def _bound(asked: GatewayRequest, found: ResolvedContent, etag: str) -> dict[str, str]:
    told = headers.common(asked, found)
    told["ETag"], told["Cache-Control"] = etag, headers.keep(found)
    return told
