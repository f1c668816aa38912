"""What is answered with: a file or parts of one, a folder's page, or other forms. Everything is bound to its CID by the
entity tag, and verified by the reader before it goes out.
"""

from collections.abc import Sequence
from contextlib import aclosing

from roost.drivers.image.contract import ImageTooLarge, InvalidImage, NotAnImage
from roost.hosts.storage_gateway import conditions, headers, listing, negotiation, pictures, wishes
from roost.hosts.storage_gateway.asked import Asked
from roost.hosts.storage_gateway.byteranges import Byteranges, content_range
from roost.hosts.storage_gateway.conditions import Part, Unsatisfiable
from roost.hosts.storage_gateway.forms import Forms
from roost.hosts.storage_gateway.kinds import Kinds
from roost.hosts.storage_gateway.pictures import Pictures
from roost.hosts.storage_gateway.reply import Reply, text, unsatisfiable
from roost.storage.content.errors import ContentMissing
from roost.storage.content.reader import Reader, Stat
from roost.storage.serve.errors import InvalidUrl, NotThere
from roost.storage.serve.service import Found
from roost.storage.unixfs.dagpb import Kind, Link

_FOLDERS = frozenset({Kind.DIRECTORY, Kind.SHARD})
_INDEX = "index.html"


class Answers:
    def __init__(self, reader: Reader, pictures: Pictures) -> None:
        self._reader = reader
        self._pictures = pictures
        self._kinds = Kinds(reader)
        self._forms = Forms(reader)

    async def answer(self, asked: Asked, found: Found) -> Reply:
        """Raises InvalidUrl, NotThere, ContentMissing, ContentDamaged, BlobFailed, and what Forms raises."""
        if not asked.own_origin and "service-worker" in asked.headers:  # it would answer for all that is here
            raise InvalidUrl("ERR_ID:00004 - Service workers live on the origin of their own CID")
        form = negotiation.wanted(asked)
        if form is not None:
            return await self._forms.answer(asked, found, form)
        if found.end.kind in _FOLDERS:
            return await self._folder(asked, found)
        return await self._file(asked, found, found.end, asked.name)

    async def _file(self, asked: Asked, found: Found, file: Stat, name: str) -> Reply:
        if (
            file.size is None
            or file.kind not in {Kind.FILE, Kind.RAW}
            or (asked.slash and asked.path and file is found.end)
        ):
            raise NotThere
        if wishes.is_wished(asked.query):
            try:
                return await self._image(asked, found, file)
            except (InvalidImage, ImageTooLarge, NotAnImage):
                if not wishes.original_instead(asked.query):
                    raise
        told = _bound(asked, found, f'"{headers.written(file.cid)}"')
        told["Accept-Ranges"] = "bytes"
        if (known := headers.settled(asked, told)) is not None:
            return known
        try:
            parts = conditions.parts(asked.headers.get("range"), asked.headers.get("if-range"), told["ETag"], file.size)
        except Unsatisfiable:
            return unsatisfiable(file.size)
        if len(parts) > 1:
            return await self._several(asked, found, file, name, told, parts)
        begin, end = (parts[0].begin, parts[0].end) if parts else (0, file.size)
        body = self._reader.content(found.scope, file, begin, end)
        first = b"" if asked.head else await anext(body, b"")
        mime = await self._kinds.of(found.scope, file, name, first if begin == 0 else b"")
        told |= headers.presented(asked, mime, name or headers.written(file.cid))
        if parts:
            told["Content-Range"] = content_range(parts[0], file.size)
        rest = body
        if len(first) == end - begin:
            rest = await body.aclose()
        return Reply(206 if parts else 200, told, first, rest, end - begin)

    async def _several(
        self, asked: Asked, found: Found, file: Stat, name: str, told: dict[str, str], parts: Sequence[Part]
    ) -> Reply:
        mime = await self._kinds.of(found.scope, file, name, b"")
        told |= headers.presented(asked, mime, name or headers.written(file.cid))
        ranges = Byteranges(told["ETag"], told["Content-Type"], parts, file.size or 0)
        told["Content-Type"] = ranges.content_type
        body = ranges.body(lambda part: self._reader.content(found.scope, file, part.begin, part.end))
        return Reply(206, told, b"" if asked.head else await anext(body), body, ranges.length)

    async def _image(self, asked: Asked, found: Found, file: Stat) -> Reply:
        wanted = wishes.wanted(asked.query, asked.headers.get("accept", ""))
        told = _bound(asked, found, f'"{pictures.name_of(file, wanted)}"')
        if (known := headers.settled(asked, told)) is not None:
            return known
        made = await self._pictures.make(found.scope, file, wanted)
        return Reply(200, told | headers.presented(asked, made.mime, asked.name), made.data, length=len(made.data))

    async def _folder(self, asked: Asked, found: Found) -> Reply:
        if asked.is_private:  # a link is one file's: there is no way from it to another
            raise NotThere
        if not asked.slash and not (asked.own_origin and not asked.path):
            location = headers.address(f"{asked.target}/", asked.query_string)
            return text(301, "Moved", headers.common(asked, found) | {"Location": location})
        try:
            index = (await self._reader.resolve(found.scope, found.end, [_INDEX]))[-1]
        except ContentMissing:
            return await self._page(asked, found)
        return await self._file(asked, found, index, _INDEX)

    async def _page(self, asked: Asked, found: Found) -> Reply:
        etag = f'"DirIndex-{listing.VERSION}_CID-{found.end.cid}"'
        keep = "max-age=604800, stale-while-revalidate=2678400" if found.lasting else "no-cache"
        told = headers.common(asked, found) | {
            "ETag": etag,
            "Cache-Control": f"{headers.whose(found)}, {keep}",
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": listing.POLICY,
        }
        if (known := headers.settled(asked, told)) is not None:
            return known
        entries, more = await self._some(found)
        body = listing.page(found.steps[0].cid, asked.path, entries, more=more)
        return Reply(200, told, body, length=len(body))

    async def _some(self, found: Found) -> tuple[Sequence[Link], bool]:
        """The entries that a page shows, and whether there are more."""
        entries: list[Link] = []
        room = listing.MOST_SIGNS
        async with aclosing(self._reader.entries(found.scope, found.end)) as links:
            async for link in links:
                room -= len(link.name)
                if room < 0 or len(entries) == listing.MOST:
                    return entries, True
                entries.append(link)
        return entries, False


def _bound(asked: Asked, found: Found, etag: str) -> dict[str, str]:
    told = headers.common(asked, found)
    told["ETag"], told["Cache-Control"] = etag, headers.keep(found)
    return told
