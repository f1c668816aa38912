"""Lists and watches: resource versions, pages, bookmarks, initial events, and what a compaction ends."""

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from tests.support.kubernetes import errors
from tests.support.kubernetes.errors import ApiError, FieldError
from tests.support.kubernetes.http_server import Connection, Request
from tests.support.kubernetes.resources import Object, Resource
from tests.support.kubernetes.schemas import check_definition, check_object, definition_of
from tests.support.kubernetes.selectors import Selector, parse_selectors
from tests.support.kubernetes.store import Change, Store, Stored

_TOO_OLD = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."  # noqa: E501
_LIST_TOO_OLD = "The resourceVersion for the provided list is too old."
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Queue = asyncio.Queue[Change | None]
"""Changes for a watch; None asks for a bookmark."""


class Lister:
    """Answers lists and serves watches of a store.

    `stale_by` makes lists at version 0 that many versions old. A watch sends a bookmark every `bookmark_seconds`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: dict[Queue, Resource] = {}
        self.stale_by = 0
        self.bookmark_seconds = 60.0
        store.listeners.append(self._publish)

    @property
    def watch_count(self) -> int:
        """The number of open watches."""
        return len(self._watches)

    def send_bookmarks(self) -> None:
        """Send a bookmark to every watch that takes them."""
        for queue in self._watches:
            queue.put_nowait(None)

    def list_objects(self, resource: Resource, namespace: str, request: Request) -> bytes:
        """Return the JSON of a list. Raises ApiError."""
        selector = parse_selectors(resource, request.first("labelSelector"), request.first("fieldSelector"))
        _validate_list(request)
        token, limit = request.first("continue"), _number(request, "limit")
        version, start = self._wanted_version(request), ""
        if token:
            version, start = self._read_token(token, request)
        current = self._store.version
        try:
            found = self._store.snapshot(resource, namespace, version)
        except ApiError as error:
            if not token:
                raise errors.expired(_LIST_TOO_OLD) from error
            raise errors.expired(_TOO_OLD, _token(-1, start)) from error
        selected = ((key, one) for key, one in found if "/".join(key) >= start and selector.matches(one.object))
        # What remains is counted only without a selector.
        matching = list(islice(selected, limit + 1) if limit and selector.tests else selected)
        shown = matching[:limit] if limit else matching
        metadata: Object = {"resourceVersion": str(version or current)}
        if len(shown) < len(matching):
            metadata["continue"] = _token(version or current, "/".join(matching[len(shown)][0]))
            if not selector.tests:
                metadata["remainingItemCount"] = len(matching) - len(shown)
        return render_list(resource, metadata, [one.body for _, one in shown])

    def select(self, resource: Resource, namespace: str, request: Request) -> list[Object]:
        """Return the objects that a request's selectors select. Raises ApiError 400."""
        selector = parse_selectors(resource, request.first("labelSelector"), request.first("fieldSelector"))
        return [one.object for _, one in self._store.snapshot(resource, namespace) if selector.matches(one.object)]

    def _wanted_version(self, request: Request) -> int | None:
        """Return the version of which a snapshot is wanted, None for the current one."""
        version = _number(request, "resourceVersion")
        if version > self._store.version:
            raise errors.version_too_large(version, self._store.version)
        if request.first("resourceVersionMatch") == "Exact":
            return version
        if request.first("resourceVersion") == "0" and self.stale_by:
            return max(self._store.compacted, self._store.version - self.stale_by)
        return None

    def _read_token(self, token: str, request: Request) -> tuple[int | None, str]:
        if request.first("resourceVersion") not in {"", "0"}:
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        try:
            found = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            return None if found["rv"] < 0 else found["rv"], found["start"]
        except (ValueError, KeyError) as error:
            raise errors.bad_request(f"invalid continue token: continue key is not valid: {error}") from error

    async def watch(
        self, resource: Resource, namespace: str, name: str, request: Request, connection: Connection
    ) -> None:
        """Stream the changes of the objects that a request selects. Raises ApiError before the stream begins."""
        fields = ",".join(
            part for part in (request.first("fieldSelector"), f"metadata.name={name}" if name else "") if part
        )
        selector = parse_selectors(resource, request.first("labelSelector"), fields)
        _validate_watch(request)
        version, initial = _number(request, "resourceVersion"), request.flag("sendInitialEvents")
        seconds = _number(request, "timeoutSeconds") or 1800
        with self._subscribe(resource) as queue:
            events = self._first_events(resource, namespace, selector, version, initial=initial)
            request.status = 200
            await connection.start_stream()
            stream = _EventStream(connection, resource, namespace, selector, request.flag("allowWatchBookmarks"))
            if isinstance(events, ApiError):
                await stream.send_error(events)
            else:
                for event in events:
                    await stream.send_change(event)
                if initial:
                    await stream.send_bookmark(self._store.version, initial=True)
                await self._follow(stream, queue, seconds, after=max(version, self._store.version if initial else 0))
        await connection.end_stream()

    def _first_events(
        self, resource: Resource, namespace: str, selector: Selector, version: int, *, initial: bool
    ) -> list[Change] | ApiError:
        if initial and version > self._store.version:
            return errors.version_too_large(version, self._store.version)
        if version == 0 or initial:
            found = self._store.snapshot(resource, namespace)
            return [Change(one.version, resource, key, one, None) for key, one in found if selector.matches(one.object)]
        try:
            return [one for one in self._store.changes_since(version) if one.resource == resource]
        except ApiError as error:
            return error

    async def _follow(self, stream: "_EventStream", queue: Queue, seconds: float, after: int) -> None:
        loop = asyncio.get_running_loop()
        end, bookmark = loop.time() + seconds, loop.time() + self.bookmark_seconds
        closed = loop.create_task(stream.connection.reader.read(1))
        try:
            while (now := loop.time()) < end and not closed.done():
                if now >= bookmark:
                    queue.put_nowait(None)
                    bookmark = now + self.bookmark_seconds
                getter = loop.create_task(queue.get())
                wait = {getter, closed}
                done, _ = await asyncio.wait(wait, timeout=min(end, bookmark) - now, return_when="FIRST_COMPLETED")
                if getter not in done:
                    getter.cancel()
                    continue
                change = getter.result()
                if change is None:
                    await stream.send_bookmark(self._store.version)
                elif change.version > after:
                    await stream.send_change(change)
            if closed.done():
                raise ConnectionResetError
            await stream.send_bookmark(self._store.version)
        finally:
            closed.cancel()
            await asyncio.wait({closed})  # the next request is read after this read has ended

    @contextmanager
    def _subscribe(self, resource: Resource) -> Iterator[Queue]:
        queue: Queue = asyncio.Queue()
        self._watches[queue] = resource
        try:
            yield queue
        finally:
            del self._watches[queue]

    def _publish(self, change: Change) -> None:
        for queue, resource in self._watches.items():
            if resource == change.resource:
                queue.put_nowait(change)


class _EventStream:
    """The events of one watch, as its selector sees the changes."""

    def __init__(
        self, connection: Connection, resource: Resource, namespace: str, selector: Selector, bookmarks: bool
    ) -> None:
        self.connection = connection
        self._resource, self._namespace, self._selector, self._bookmarks = resource, namespace, selector, bookmarks

    async def send_change(self, change: Change) -> None:
        if self._namespace and change.key[0] != self._namespace:
            return
        now = change.now and self._selector.matches(change.now.object)
        before = change.before and self._selector.matches(change.before.object)
        if change.now and now:
            await self._send("MODIFIED" if before else "ADDED", change.now.full)
        elif change.before and before:
            gone = change.deleted or _at_version(change.before, change.version)
            await self._send("DELETED", gone.full)

    async def send_bookmark(self, version: int, *, initial: bool = False) -> None:
        if not self._bookmarks:
            return
        metadata: Object = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        item: Object = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._resource.kind == "Pod":
            item |= {"spec": {"containers": None}, "status": {}}
        await self._send("BOOKMARK", json.dumps(item, separators=(",", ":")).encode())

    async def send_error(self, error: ApiError) -> None:
        check_object(error.status())
        await self._send("ERROR", json.dumps(error.status(), separators=(",", ":")).encode())

    async def _send(self, kind: str, item: bytes) -> None:
        await self.connection.send_chunk(b'{"type":"%s","object":%s}\n' % (kind.encode(), item))


def render_list(resource: Resource, metadata: Object, bodies: list[bytes]) -> bytes:
    """Return the JSON of a list of objects, which were checked when they were stored."""
    head: Object = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    check_definition(definition_of(resource.api_version, head["kind"]), {**head, "items": []})
    return json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"items":[' + b",".join(bodies) + b"]}\n"


def _at_version(stored: Stored, version: int) -> Stored:
    metadata = {**stored.object["metadata"], "resourceVersion": str(version)}
    return Stored({**stored.object, "metadata": metadata}, version)


def _token(version: int, start: str) -> str:
    return (
        urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start}).encode())
        .decode()
        .rstrip("=")
    )


def _number(request: Request, name: str) -> int:
    text = request.first(name) or "0"
    if not text.removeprefix("-").isdecimal():
        why = f'parsing "{text}": invalid syntax'
        if name != "resourceVersion":
            raise errors.bad_request(f"strconv.ParseInt: {why}")
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: {why}'
        raise (
            ApiError(500, "", why) if request.flag("watch") else errors.bad_request(f"invalid resource version: {why}")
        )
    return max(0, int(text))


def _validate_list(request: Request) -> None:
    match, version = request.first("resourceVersionMatch"), request.first("resourceVersion")
    found: list[FieldError] = []
    if match:
        place = "resourceVersionMatch"
        if not version:
            found.append(FieldError(place, "Forbidden", f"{place} is forbidden unless resourceVersion is provided"))
        if request.first("continue"):
            found.append(FieldError(place, "Forbidden", f"{place} is forbidden when continue is provided"))
        if match not in {"Exact", "NotOlderThan"}:
            detail = 'supported values: "Exact", "NotOlderThan", ""'
            found.append(FieldError(place, "Unsupported value", detail, match))
        if match == "Exact" and version == "0":
            detail = f'{place} "exact" is forbidden for resourceVersion "0"'
            found.append(FieldError(place, "Forbidden", detail))
    if "sendInitialEvents" in request.query:
        found.append(FieldError("sendInitialEvents", "Forbidden", "sendInitialEvents is forbidden for list"))
    if found:
        raise errors.invalid_options("ListOptions", *found)


def _validate_watch(request: Request) -> None:
    match, place = request.first("resourceVersionMatch"), "resourceVersionMatch"
    found: list[FieldError] = []
    if "sendInitialEvents" in request.query and match != "NotOlderThan":
        detail = f"sendInitialEvents requires setting {place} to NotOlderThan"
        found.append(FieldError(place, "Forbidden", detail))
    if match and "sendInitialEvents" not in request.query:
        detail = f"{place} is forbidden for watch unless sendInitialEvents is provided"
        found.append(FieldError(place, "Forbidden", detail))
    if match not in {"", "NotOlderThan"}:
        found.append(FieldError(place, "Unsupported value", 'supported values: "NotOlderThan"', match))
    if found:
        raise errors.invalid_options("ListOptions", *found)
