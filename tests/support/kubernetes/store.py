"""The objects of the fake cluster with their history: versions that grow, events since the last compaction."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.support.kubernetes.errors import expired
from tests.support.kubernetes.resources import BY_KIND, Object, Resource, resource_of
from tests.support.kubernetes.schemas import check_object

Key = tuple[str, str]
"""Namespace, empty if there is none, and name."""


@dataclass(frozen=True)
class Stored:
    """One version of an object, which nothing may change. `body` is its JSON as an item of a list."""

    object: Object
    version: int

    @cached_property
    def body(self) -> bytes:
        shown = {key: value for key, value in self.object.items() if key not in {"kind", "apiVersion"}}
        return json.dumps(shown, separators=(",", ":"), ensure_ascii=False).encode()

    @property
    def full(self) -> bytes:
        """Its JSON with its kind and API version."""
        head = f'{{"kind":"{self.object["kind"]}","apiVersion":"{self.object["apiVersion"]}",'
        return head.encode() + self.body[1:]


@dataclass(frozen=True)
class Change:
    """A write: what an object is now, None after its deletion, and what it was, None before its creation.

    `deleted` is a deleted object at the version of its deletion.
    """

    version: int
    resource: Resource
    key: Key
    now: Stored | None
    before: Stored | None
    deleted: Stored | None = None


class Store:
    """Keeps objects by resource and key. `listeners` hear of every change after it was made."""

    def __init__(self) -> None:
        self.version = 1
        self.compacted = 0
        self.listeners: list[Callable[[Change], None]] = []
        self._objects: dict[Resource, dict[Key, Stored]] = {resource: {} for resource in BY_KIND.values()}
        self._log: list[Change] = []

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, which the caller must not change."""
        found = self._objects[BY_KIND[kind]].get((namespace, name))
        return found.object if found else None

    def find(self, resource: Resource, key: Key) -> Stored | None:
        return self._objects[resource].get(key)

    def resources(self) -> list[Resource]:
        """Return the resources that the API server has: custom ones while their definitions exist."""
        defined = {name for _, name in self._objects[BY_KIND["CustomResourceDefinition"]]}
        return [one for one in BY_KIND.values() if not one.is_custom or one.qualified in defined]

    def objects(self, kind: str, namespace: str = "") -> list[Object]:
        """Return the objects of a kind, of all namespaces if none is given."""
        found = self._objects[BY_KIND[kind]].items()
        return [stored.object for key, stored in list(found) if not namespace or key[0] == namespace]

    def put(self, item: Object) -> Object:
        """Create or replace an object, check it by its schema, and return it with its new version."""
        version = self.version + 1
        stored = Stored({**item, "metadata": {**item["metadata"], "resourceVersion": str(version)}}, version)
        check_object(stored.object)
        resource, key = resource_of(item), key_of(item)
        before = self._objects[resource].get(key)
        self._objects[resource][key] = stored
        self._record(Change(version, resource, key, stored, before))
        return stored.object

    def remove(self, item: Object) -> Object:
        """Delete an object and return it with the version of its deletion."""
        resource, key = resource_of(item), key_of(item)
        before = self._objects[resource].pop(key)
        version = self.version + 1
        gone = {**before.object, "metadata": {**before.object["metadata"], "resourceVersion": str(version)}}
        self._record(Change(version, resource, key, None, before, Stored(gone, version)))
        return gone

    def compact(self) -> None:
        """Forget the history up to now: older versions are expired from here on."""
        self.compacted = self.version
        self._log.clear()

    def changes_since(self, version: int) -> list[Change]:
        """Return the changes after a version. Raises ApiError 410."""
        if version < self.compacted:
            raise expired(f"too old resource version: {version} ({self.compacted})")
        return self._log[bisect_right(self._log, version, key=lambda one: one.version) :]

    def snapshot(self, resource: Resource, namespace: str, version: int | None = None) -> list[tuple[Key, Stored]]:
        """Return the objects, sorted by key, as they were at a version. Raises ApiError 410."""
        found = dict(self._objects[resource])
        for change in reversed(self.changes_since(version) if version is not None else []):
            if change.resource == resource and change.before:
                found[change.key] = change.before
            elif change.resource == resource:
                found.pop(change.key)
        return sorted((item for item in found.items() if not namespace or item[0][0] == namespace), key=_by_path)

    def dump(self) -> Iterator[Object]:
        """Yield every object."""
        for found in self._objects.values():
            yield from (stored.object for stored in list(found.values()))

    def _record(self, change: Change) -> None:
        self.version = change.version
        self._log.append(change)
        for listener in list(self.listeners):
            listener(change)


def key_of(item: Object) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _by_path(item: tuple[Key, Stored]) -> str:
    return "/".join(item[0])
