"""Responses with content: files, ranges, images, directory listings and other formats.

The ETag binds each response to its CID; the reader verifies blocks before they are sent.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing

from roost.drivers.image.contract import ImageTooLarge, InvalidImage, UnsupportedImage
from roost.http.storage_gateway import directory_listing
from roost.http.storage_gateway.errors import InvalidGatewayUrl, PathNotFound
from roost.http.storage_gateway.formats import TrustlessFormats, negotiate_format
from roost.http.storage_gateway.headers import (
    cache_control,
    check_preconditions,
    cid_text,
    common_headers,
    encode_location,
    presentation_headers,
)
from roost.http.storage_gateway.images import (
    ImageResizer,
    falls_back_to_original,
    has_image_options,
    image_key,
    parse_image_options,
)
from roost.http.storage_gateway.range_requests import (
    ByteRange,
    MultipartByteRanges,
    RangeNotSatisfiable,
    content_range,
    select_ranges,
)
from roost.http.storage_gateway.request import GatewayRequest
from roost.http.storage_gateway.resolver import ResolvedContent
from roost.http.storage_gateway.response import GatewayResponse, range_not_satisfiable, text_response
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsKind
from roost.storage.files.uploads import mime_sniffing

_CACHE_SIZE = 50_000


class MimeTypes:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader
        self._cache: OrderedDict[tuple[int, bytes, str], str] = OrderedDict()

    async def detect(self, scope: ContentScope, file: ContentStat, name: str, beginning: bytes) -> str:
        """Return the MIME type of a file; `beginning` are its first bytes as far as they are read already."""
        extension = name.rpartition(".")[2].lower()[:16] if "." in name else ""
        key = (file.cid.codec, file.cid.digest, extension)  # a node and its file differ
        if (known := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return known
        if len(beginning) < min(mime_sniffing.SNIFFED_BYTES, file.size or 0):  # a range may be shorter
            beginning = await self._read_beginning(scope, file)
        beginning = beginning[: mime_sniffing.SNIFFED_BYTES]
        mime = mime_sniffing.mime_type(beginning, f"file.{extension}" if extension else "")
        self._cache[key] = mime
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return mime

    async def _read_beginning(self, scope: ContentScope, file: ContentStat) -> bytes:
        pieces = self._reader.stream_file(scope, file, 0, mime_sniffing.SNIFFED_BYTES)
        try:
            return await anext(pieces, b"")
        finally:
            await pieces.aclose()


FOLDER_KINDS = frozenset({UnixfsKind.DIRECTORY, UnixfsKind.SHARD})
_INDEX = "index.html"


class ContentResponses:
    def __init__(self, reader: ContentReader, resizer: ImageResizer) -> None:
        self._reader = reader
        self._resizer = resizer
        self._mime_types = MimeTypes(reader)
        self._formats = TrustlessFormats(reader)

    async def create_response(self, request: GatewayRequest, content: ResolvedContent) -> GatewayResponse:
        """Create the response. Raises InvalidGatewayUrl, PathNotFound, and errors of formats, images and content."""
        # A service worker would intercept the requests for all content of the gateway.
        if not request.own_origin and "service-worker" in request.headers:
            raise InvalidGatewayUrl("ERR_ID:00004 - Service workers live on the origin of their own CID")
        form = negotiate_format(request)
        if form is not None:
            return await self._formats.create_response(request, content, form)
        if content.end.kind in FOLDER_KINDS:
            return await self._folder(request, content)
        if content.end.kind is UnixfsKind.SYMLINK and content.end.node is not None and not request.slash:
            return _symlink_response(request, content, content.end.node.unixfs.data)
        return await self._file(request, content, content.end, request.name)

    async def read_beginning(self, content: ResolvedContent, limit: int) -> bytes:
        """Read at most `limit` bytes of a file. Raises ContentNotAFile and errors of content."""
        async with aclosing(self._reader.stream_file(content.scope, content.end, 0, limit)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def detect_mime(self, content: ResolvedContent, name: str) -> str:
        """Return the MIME type of a file. Raises errors of content."""
        return await self._mime_types.detect(content.scope, content.end, name, b"")

    async def _file(
        self, request: GatewayRequest, content: ResolvedContent, file: ContentStat, name: str
    ) -> GatewayResponse:
        if (
            file.size is None
            or file.kind not in {UnixfsKind.FILE, UnixfsKind.RAW}
            or (request.slash and request.path and file is content.end)
        ):
            raise PathNotFound
        if has_image_options(request.query):
            try:
                return await self._image(request, content, file)
            except (InvalidImage, ImageTooLarge, UnsupportedImage):
                if not falls_back_to_original(request.query):
                    raise
        # The page of a folder is determined by the folder, so it has the folder's tag and not that of its index.html.
        headers = _cached_headers(request, content, f'"{cid_text(content.end.cid)}"')
        headers["Accept-Ranges"] = "bytes"
        if (response := check_preconditions(request, headers)) is not None:
            return response
        try:
            ranges = select_ranges(
                request.headers.get("range"), request.headers.get("if-range"), headers["ETag"], file.size
            )
        except RangeNotSatisfiable:
            return range_not_satisfiable(file.size)
        if len(ranges) > 1:
            return await self._multipart(request, content, file, name, headers, ranges)
        begin, end = (ranges[0].begin, ranges[0].end) if ranges else (0, file.size)
        body = self._reader.stream_file(content.scope, file, begin, end)
        first = b"" if request.head else await anext(body, b"")
        mime = await self._mime_types.detect(content.scope, file, name, first if begin == 0 else b"")
        headers |= presentation_headers(request, mime, name or cid_text(file.cid))
        if ranges:
            headers["Content-Range"] = content_range(ranges[0], file.size)
        rest = body
        if len(first) == end - begin:
            rest = await body.aclose()
        return GatewayResponse(206 if ranges else 200, headers, first, rest, end - begin)

    async def _multipart(
        self,
        request: GatewayRequest,
        content: ResolvedContent,
        file: ContentStat,
        name: str,
        headers: dict[str, str],
        ranges: Sequence[ByteRange],
    ) -> GatewayResponse:
        mime = await self._mime_types.detect(content.scope, file, name, b"")
        headers |= presentation_headers(request, mime, name or cid_text(file.cid))
        multipart = MultipartByteRanges(headers["ETag"], headers["Content-Type"], ranges, file.size or 0)
        headers["Content-Type"] = multipart.content_type
        body = multipart.stream(lambda one: self._reader.stream_file(content.scope, file, one.begin, one.end))
        return GatewayResponse(206, headers, b"" if request.head else await anext(body), body, multipart.length)

    async def _image(self, request: GatewayRequest, content: ResolvedContent, file: ContentStat) -> GatewayResponse:
        options = parse_image_options(request.query, request.headers.get("accept", ""))
        headers = _cached_headers(request, content, f'"{image_key(file, options)}"')
        if (response := check_preconditions(request, headers)) is not None:
            return response
        image = await self._resizer.resize(content.scope, file, options)
        headers |= presentation_headers(request, image.mime, request.name)
        return GatewayResponse(200, headers, image.data, length=len(image.data))

    async def _folder(self, request: GatewayRequest, content: ResolvedContent) -> GatewayResponse:
        if request.is_private:  # a signed URL is for one file
            raise PathNotFound
        if not request.slash and not (request.own_origin and not request.path):
            location = encode_location(f"{request.target}/", request.query_string)
            return text_response(301, "Moved", common_headers(request, content) | {"Location": location})
        try:
            index = (await self._reader.resolve(content.scope, content.end, [_INDEX]))[-1]
        except ContentNotFound:
            return await self._listing(request, content)
        return await self._file(request, content, index, _INDEX)

    async def _listing(self, request: GatewayRequest, content: ResolvedContent) -> GatewayResponse:
        headers = common_headers(request, content) | {
            "ETag": f'"DirIndex-{directory_listing.VERSION}_CID-{content.end.cid}"',
            "Cache-Control": cache_control(content, is_derived=True),
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": directory_listing.SECURITY_POLICY,
        }
        if (response := check_preconditions(request, headers)) is not None:
            return response
        entries, more = await self._list_entries(content)
        body = directory_listing.render_listing(content.steps[0].cid, request.path, entries, more=more)
        return GatewayResponse(200, headers, body, length=len(body))

    async def _list_entries(self, content: ResolvedContent) -> tuple[Sequence[PBLink], bool]:
        """Return the entries of a listing and whether the folder has more."""
        entries: list[PBLink] = []
        names = 0
        async with aclosing(self._reader.list_entries(content.scope, content.end)) as links:
            async for link in links:
                names += len(link.name)
                if names > directory_listing.NAMES_LIMIT or len(entries) == directory_listing.ENTRY_LIMIT:
                    return entries, True
                entries.append(link)
        return entries, False


def _symlink_response(request: GatewayRequest, content: ResolvedContent, target: bytes) -> GatewayResponse:
    """Return the target of a symbolic link, which the client resolves itself."""
    headers = _cached_headers(request, content, f'"{cid_text(content.end.cid)}"') | {"Content-Type": "inode/symlink"}
    if (response := check_preconditions(request, headers)) is not None:
        return response
    return GatewayResponse(200, headers, target, length=len(target))


def _cached_headers(request: GatewayRequest, content: ResolvedContent, etag: str) -> dict[str, str]:
    return common_headers(request, content) | {"ETag": etag, "Cache-Control": cache_control(content)}
