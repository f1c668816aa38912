"""What is answered with: a file or a part of one, a folder's page, a block, a CAR. Everything is bound to its CID by
the entity tag, and verified by the reader before it goes out.
"""

import hashlib
from collections.abc import Sequence
from contextlib import aclosing
from urllib.parse import quote

from roost.drivers.image.contract import ImageTooLarge, InvalidImage, NotAnImage
from roost.hosts.storage_gateway import conditions, disposition, listing, pictures, wishes
from roost.hosts.storage_gateway.asked import Asked
from roost.hosts.storage_gateway.conditions import Unsatisfiable
from roost.hosts.storage_gateway.kinds import Kinds
from roost.hosts.storage_gateway.pictures import Pictures
from roost.hosts.storage_gateway.reply import Reply, text
from roost.storage.content.errors import ContentMissing
from roost.storage.content.export import DagScope, Span, blocks_car
from roost.storage.content.reader import Reader, Stat
from roost.storage.serve.errors import InvalidUrl, NotThere
from roost.storage.serve.service import Found
from roost.storage.unixfs.dagpb import Kind, Link

RAW, CAR = "application/vnd.ipld.raw", "application/vnd.ipld.car"
FORMATS = {"raw": RAW, "car": CAR}
_FOLDERS = frozenset({Kind.DIRECTORY, Kind.SHARD})
_INDEX = "index.html"


def wanted_format(asked: Asked) -> str | None:
    """`raw` or `car`, by `?format=` or else by `Accept`; None for what a browser wants. Raises InvalidUrl."""
    named = asked.query.get("format")
    if named is not None:
        if named not in FORMATS:
            raise InvalidUrl("ERR_ID:00004 - format is raw or car")
        return named
    accepted = asked.headers.get("accept", "").lower()
    return next((name for name, mime in FORMATS.items() if mime in accepted), None)


class Answers:
    def __init__(self, reader: Reader, pictures: Pictures) -> None:
        self._reader = reader
        self._pictures = pictures
        self._kinds = Kinds(reader)

    async def answer(self, asked: Asked, found: Found) -> Reply:
        """Raises InvalidUrl, NotThere, ContentMissing, ContentDamaged, BlobFailed."""
        match wanted_format(asked):
            case "raw":
                return await self._block(asked, found)
            case "car":
                return await self._car(asked, found)
            case _ if found.end.kind in _FOLDERS:
                return await self._folder(asked, found)
            case _:
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
        etag = f'"{file.cid}"'
        headers = _common(asked, found) | {"ETag": etag, "Cache-Control": _keep(found), "Accept-Ranges": "bytes"}
        if conditions.is_known(asked.headers.get("if-none-match"), etag):
            return Reply(304, headers)
        try:
            part = conditions.part(asked.headers.get("range"), asked.headers.get("if-range"), etag, file.size)
        except Unsatisfiable:
            return text(416, "Range not satisfiable", {"Content-Range": f"bytes */{file.size}"})
        begin, end = (0, file.size) if part is None else (part.begin, part.end)
        body = self._reader.content(found.scope, file, begin, end)
        first = b"" if asked.head else await anext(body, b"")
        mime = await self._kinds.of(found.scope, file, name, first if begin == 0 else b"")
        headers |= _presented(asked, mime, name or str(file.cid))
        if part is not None:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{file.size}"
        rest = body
        if len(first) == end - begin:
            rest = await body.aclose()
        return Reply(200 if part is None else 206, headers, first, rest, end - begin)

    async def _image(self, asked: Asked, found: Found, file: Stat) -> Reply:
        wanted = wishes.wanted(asked.query, asked.headers.get("accept", ""))
        etag = f'"{pictures.name_of(file, wanted)}"'
        headers = _common(asked, found) | {"ETag": etag, "Cache-Control": _keep(found)}
        if conditions.is_known(asked.headers.get("if-none-match"), etag):
            return Reply(304, headers)
        made = await self._pictures.make(found.scope, file, wanted)
        return Reply(200, headers | _presented(asked, made.mime, asked.name), made.data, length=len(made.data))

    async def _folder(self, asked: Asked, found: Found) -> Reply:
        if asked.is_private:  # a link is one file's: there is no way from it to another
            raise NotThere
        if not asked.slash and not (asked.own_origin and not asked.path):
            query = f"?{asked.query_string}" if asked.query_string else ""
            location = quote(f"{asked.target}/{query}", safe="/%?&=:@!$'()*+,;~-._")
            return text(301, "Moved", _common(asked, found) | {"Location": location})
        try:
            index = (await self._reader.resolve(found.scope, found.end.cid, [_INDEX]))[-1]
        except ContentMissing:
            return await self._page(asked, found)
        return await self._file(asked, found, index, _INDEX)

    async def _page(self, asked: Asked, found: Found) -> Reply:
        etag = f'"DirIndex-{listing.VERSION}_CID-{found.end.cid}"'
        keep = "max-age=604800, stale-while-revalidate=2678400" if found.lasting else "no-cache"
        headers = _common(asked, found) | {
            "ETag": etag,
            "Cache-Control": f"{_whose(found)}, {keep}",
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": listing.POLICY,
        }
        if conditions.is_known(asked.headers.get("if-none-match"), etag):
            return Reply(304, headers)
        entries = await self._some(found)
        body = listing.page(found.steps[0].cid, asked.path, entries[: listing.MOST], more=len(entries) > listing.MOST)
        return Reply(200, headers, body, length=len(body))

    async def _some(self, found: Found) -> Sequence[Link]:
        """Entries of a folder, one more than are shown if there are."""
        entries: list[Link] = []
        async with aclosing(self._reader.entries(found.scope, found.end)) as links:
            async for link in links:
                entries.append(link)
                if len(entries) > listing.MOST:
                    break
        return entries

    async def _block(self, asked: Asked, found: Found) -> Reply:
        cid = found.end.cid
        headers = _trustless(asked, found, RAW, f'"{cid}.raw"', f"{cid}.bin")
        if conditions.is_known(asked.headers.get("if-none-match"), headers["ETag"]):
            return Reply(304, headers)
        block = await self._reader.block(found.scope, cid)
        return Reply(200, headers, block, length=len(block))

    async def _car(self, asked: Asked, found: Found) -> Reply:
        scope, span = _chosen(asked)
        digest = hashlib.sha256(f"{found.steps[0].cid}/{asked.path}/{scope}/{span}".encode()).hexdigest()[:16]
        cid = found.end.cid
        mime = f"{CAR}; version=1; order=dfs; dups=n"
        headers = _trustless(asked, found, mime, f'W/"{cid}.car.{digest}"', f"{cid}.car") | {"Accept-Ranges": "none"}
        if conditions.is_known(asked.headers.get("if-none-match"), headers["ETag"]):
            return Reply(304, headers)
        pieces = blocks_car(self._reader, found.scope, found.steps, scope, span)
        return Reply(200, headers, b"" if asked.head else await anext(pieces), pieces)


def _chosen(asked: Asked) -> tuple[DagScope, Span | None]:
    """What of a graph is asked for. Raises InvalidUrl, InvalidSpan."""
    span, version = asked.query.get("entity-bytes"), asked.query.get("car-version", "1")
    try:
        scope = DagScope(asked.query.get("dag-scope", DagScope.ALL))
    except ValueError:
        raise InvalidUrl("ERR_ID:00004 - dag-scope is block, entity or all") from None
    if version != "1":
        raise InvalidUrl("ERR_ID:00004 - CARs of version 1 are served")
    return scope, None if span is None else Span.parse(span)


def _common(asked: Asked, found: Found) -> dict[str, str]:
    """Where the content is in its graph. The path is told as it was sent: decoded, it could end the header."""
    below = "/".join(quote(name) for name in asked.path)
    told = {
        "X-Ipfs-Path": f"/ipfs/{asked.cid}/{below}".removesuffix("/"),
        "X-Ipfs-Roots": ",".join(str(step.cid) for step in found.steps),
        "Vary": "Accept",
    }
    if asked.is_private:
        told = {"Referrer-Policy": "no-referrer"}
    return told if found.signature is None else told | {"pinata-signature": found.signature}


def _trustless(asked: Asked, found: Found, mime: str, etag: str, name: str) -> dict[str, str]:
    return {
        **_common(asked, found),
        "ETag": etag,
        "Cache-Control": _keep(found),
        "Content-Type": mime,
        "Content-Disposition": disposition.disposition("attachment", asked.query.get("filename") or name),
    }


def _presented(asked: Asked, mime: str, name: str) -> dict[str, str]:
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


def _whose(found: Found) -> str:
    return "public" if found.shared else "private"


def _keep(found: Found) -> str:
    """How long caches may keep what a CID names: for good, where the address will always lead to it."""
    return f"{_whose(found)}, max-age=29030400, immutable" if found.lasting else f"{_whose(found)}, no-cache"
