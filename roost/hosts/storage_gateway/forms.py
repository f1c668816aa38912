"""Content in other forms than a browser shows: a block and a CAR, which their reader can check, and a tar. They are for
programs: a browser saves them.
"""

import hashlib

from roost.hosts.storage_gateway import conditions, disposition, headers
from roost.hosts.storage_gateway.asked import Asked
from roost.hosts.storage_gateway.byteranges import content_range
from roost.hosts.storage_gateway.conditions import Part, Unsatisfiable
from roost.hosts.storage_gateway.negotiation import CAR, RAW, TAR, Form
from roost.hosts.storage_gateway.reply import Reply, unsatisfiable
from roost.storage.content import archive
from roost.storage.content.archive import Archive
from roost.storage.content.export import DagScope, Span, blocks_car
from roost.storage.content.reader import Reader
from roost.storage.serve.errors import InvalidUrl
from roost.storage.serve.service import Found


class Forms:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def answer(self, asked: Asked, found: Found, form: Form) -> Reply:
        """Raises InvalidUrl, Malformed, InvalidSpan, NotArchivable, TooManyMembers, ContentMissing, ContentDamaged."""
        match form.name:
            case "raw":
                return await self._block(asked, found, form)
            case "car":
                return await self._car(asked, found, form)
            case _:
                return await self._tar(asked, found, form)

    async def _block(self, asked: Asked, found: Found, form: Form) -> Reply:
        cid = found.end.cid
        told = _told(asked, found, form, RAW, f"{cid}.bin") | {"ETag": f'"{cid}.raw"', "Accept-Ranges": "bytes"}
        if (known := headers.settled(asked, told)) is not None:
            return known
        block = await self._reader.block(found.scope, cid)
        try:
            parts = conditions.parts(
                asked.headers.get("range"), asked.headers.get("if-range"), told["ETag"], len(block)
            )
        except Unsatisfiable:
            return unsatisfiable(len(block))
        if len(parts) != 1:
            return Reply(200, told, block, length=len(block))
        return _part(told, block, parts[0])

    async def _car(self, asked: Asked, found: Found, form: Form) -> Reply:
        scope, span = _chosen(asked)
        what = f"{found.steps[0].cid}/{asked.path}/{scope}/{span}/{form.dups}"
        cid = found.end.cid
        mime = f"{CAR}; version=1; order=dfs; dups={'y' if form.dups else 'n'}"
        told = _told(asked, found, form, mime, f"{cid}.car")
        told |= {"ETag": f'W/"{cid}.car.{_digest(what)}"', "Accept-Ranges": "none"}
        if (known := headers.settled(asked, told)) is not None:
            return known
        pieces = blocks_car(self._reader, found.scope, found.steps, scope, span, dups=form.dups)
        return Reply(200, told, b"" if asked.head else await anext(pieces), pieces)

    async def _tar(self, asked: Asked, found: Found, form: Form) -> Reply:
        cid = found.end.cid
        told = _told(asked, found, form, TAR, f"{cid}.tar")
        told |= {"ETag": f'"{cid}.tar-{archive.VERSION}"', "Accept-Ranges": "none"}
        if (known := headers.settled(asked, told)) is not None:
            return known
        made = Archive(self._reader, found.scope, found.end)
        await made.check()
        pieces = made.pieces()
        return Reply(200, told, b"" if asked.head else await anext(pieces), pieces)


def _chosen(asked: Asked) -> tuple[DagScope, Span | None]:
    """What of a graph is asked for. Raises InvalidUrl, InvalidSpan."""
    span = asked.query.get("entity-bytes")
    try:
        scope = DagScope(asked.query.get("dag-scope", DagScope.ALL))
    except ValueError:
        raise InvalidUrl("ERR_ID:00004 - dag-scope is block, entity or all") from None
    return scope, None if span is None else Span.parse(span)


def _part(told: dict[str, str], block: bytes, part: Part) -> Reply:
    body = block[part.begin : part.end]
    return Reply(206, told | {"Content-Range": content_range(part, len(block))}, body, length=len(body))


def _told(asked: Asked, found: Found, form: Form, mime: str, name: str) -> dict[str, str]:
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
