"""The garbage collector and the namespace controller: owner references, and namespaces that end."""

from typing import Any

from tests.support.kubernetes.resources import BY_KIND, Object, resource_of
from tests.support.kubernetes.store import Change, Store, key_of
from tests.support.kubernetes.writes import Writer


class GarbageCollector:
    """Hears of every change and deletes what has lost its owner or its namespace."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store, self._writer = store, writer
        self._dependents: dict[str, set[tuple[str, str, str]]] = {}
        self._known: set[str] = set()
        store.listeners.append(self._handle)

    def _handle(self, change: Change) -> None:
        now, before = (one.object if one else None for one in (change.now, change.before))
        item: Any = now or before
        place = (change.resource.kind, *change.key)
        for reference in item["metadata"].get("ownerReferences", ()):
            self._dependents.setdefault(reference["uid"], set()).add(place)
        if now:
            self._known.add(now["metadata"]["uid"])
            self._check_owners(now)
            if "deletionTimestamp" in now["metadata"]:
                self._continue_deletion(now)
        elif before:
            self._known.discard(before["metadata"]["uid"])
            self._release_dependents(before["metadata"]["uid"])
            for owner in before["metadata"].get("ownerReferences", ()):
                if found := self._store.get(owner["kind"], change.key[0], owner["name"]):
                    self._continue_deletion(found)
        if change.key[0] and not now:
            self._finish_namespace(change.key[0])

    def _check_owners(self, item: Object) -> None:
        owners = item["metadata"].get("ownerReferences", ())
        if (
            owners
            and not any(one["uid"] in self._known for one in owners)
            and "deletionTimestamp" not in item["metadata"]
        ):
            self._delete(item, "Background")

    def _release_dependents(self, uid: str) -> None:
        for kind, namespace, name in sorted(self._dependents.pop(uid, ())):
            if item := self._store.get(kind, namespace, name):
                self._check_owners(item)

    def _delete(self, item: Object, policy: str) -> None:
        if self._store.get(item["kind"], *key_of(item)) is None:
            return  # gone with something else meanwhile
        options = {"propagationPolicy": policy, "preconditions": {"uid": item["metadata"]["uid"]}}
        self._writer.delete(resource_of(item), key_of(item), options)

    def _continue_deletion(self, item: Object) -> None:
        """Carry on with an object that is being deleted: orphan or delete its dependents, empty a namespace."""
        metadata = item["metadata"]
        if "deletionTimestamp" not in metadata:
            return
        if item["kind"] == "Namespace":
            self._empty_namespace(metadata["name"])
            return
        dependents = [found for place in sorted(self._dependents.get(metadata["uid"], ()))
                      if (found := self._store.get(*place)) and _is_owned(found, metadata["uid"])]  # fmt: skip
        finalizers = metadata.get("finalizers", ())
        if "orphan" in finalizers:
            for one in dependents:
                self._writer.change(one, lambda live: _without_owner(live, metadata["uid"]))
            self._writer.change(item, lambda live: _without_finalizer(live, "orphan"))
        elif "foregroundDeletion" in finalizers:
            for one in dependents:
                if "deletionTimestamp" not in one["metadata"]:
                    self._delete(one, "Foreground")
            dependents = [one for one in dependents if self._store.get(one["kind"], *key_of(one))]
            if not any(_blocks(one, metadata["uid"]) for one in dependents):
                self._writer.change(item, lambda live: _without_finalizer(live, "foregroundDeletion"))

    def _empty_namespace(self, namespace: str) -> None:
        """Delete the pods first and the rest when they are gone, as ordered namespace deletion does."""
        contents = [one for resource in BY_KIND.values() if resource.namespaced
                    for one in self._store.objects(resource.kind, namespace)]  # fmt: skip
        pods = [one for one in contents if one["kind"] == "Pod"]
        for one in pods or contents:
            if "deletionTimestamp" not in one["metadata"]:
                self._delete(one, "Background")
        self._finish_namespace(namespace)

    def _finish_namespace(self, name: str) -> None:
        found = self._store.get("Namespace", "", name)
        if not found or "deletionTimestamp" not in found["metadata"]:
            return
        kinds = [resource.kind for resource in BY_KIND.values() if resource.namespaced]
        left = [one for kind in kinds for one in self._store.objects(kind, name)]
        if not left:
            self._writer.change(found, lambda live: {**live, "spec": {}})
        elif not any(one["kind"] == "Pod" for one in left) and any(
            "deletionTimestamp" not in one["metadata"] for one in left
        ):
            self._empty_namespace(name)


def _is_owned(item: Object, uid: str) -> bool:
    return any(one["uid"] == uid for one in item["metadata"].get("ownerReferences", ()))


def _blocks(item: Object, uid: str) -> bool:
    owners = item["metadata"].get("ownerReferences", ())
    return any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in owners)


def _without_owner(item: Object, uid: str) -> Object:
    owners = [one for one in item["metadata"].get("ownerReferences", ()) if one["uid"] != uid]
    return {**item, "metadata": {**item["metadata"], "ownerReferences": owners}}


def _without_finalizer(item: Object, name: str) -> Object:
    finalizers = [one for one in item["metadata"].get("finalizers", ()) if one != name]
    metadata = {key: value for key, value in item["metadata"].items() if key != "finalizers"}
    return {**item, "metadata": {**metadata, **({"finalizers": finalizers} if finalizers else {})}}
