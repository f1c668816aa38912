"""Creates, updates, patches and deletions of objects, with what the API server does around each."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.support.kubernetes import errors
from tests.support.kubernetes.admission import Admission
from tests.support.kubernetes.defaults import fill_defaults
from tests.support.kubernetes.errors import FieldError
from tests.support.kubernetes.incoming import (
    check_name,
    decode_document,
    join_string_data,
    parse_body,
    set_namespace,
)
from tests.support.kubernetes.managed_fields import apply_configuration, record_update
from tests.support.kubernetes.patches import apply_json_patch, apply_merge_patch, apply_strategic_patch
from tests.support.kubernetes.resources import Object, Resource
from tests.support.kubernetes.schemas import definition_of
from tests.support.kubernetes.store import Key, Store
from tests.support.kubernetes.validation import validate_object, validate_update

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_GENERATIONS = set("Pod NetworkPolicy Ingress Deployment StatefulSet DaemonSet Job PodDisruptionBudget".split())
_RETURNED = set(
    "Pod PersistentVolumeClaim PersistentVolume Namespace Service ServiceAccount ResourceQuota StorageClass "
    "VolumeAttachment".split()
)
_STATUS_AT_CREATION = {"Node", "Namespace", "PersistentVolumeClaim", "Service", "Pod"}
_CREATED_BY_UPDATE = {
    "Lease",
    "Event",
    "LimitRange",
    "Service",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
}
_VERSION_NEEDED = {"Lease", "PodDisruptionBudget", "VolumeAttachment"}
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion")
_PATCHES = {f"application/{kind}-patch+json" for kind in ("json", "merge", "strategic-merge")}
POLICIES = ("Foreground", "Background", "Orphan")


def make_suffix() -> str:
    """Return five letters, as generated names end with."""
    return "".join(secrets.choice(_LETTERS) for _ in range(5))


def timestamp(seconds: float = 0) -> str:
    """Return the time in that many seconds as metadata has it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class WriteOptions:
    """The query parameters of a write."""

    manager: str
    dry_run: bool = False
    strictness: str = "Warn"
    force: bool = False
    subresource: str = ""

    def entry(self, api_version: str, operation: str = "Update") -> Object:
        """Return the entry of `managedFields` for the writer, without its fields."""
        found = {"manager": self.manager, "operation": operation, "apiVersion": api_version, "time": timestamp(),
                 "fieldsType": "FieldsV1"}  # fmt: skip
        return found | ({"subresource": self.subresource} if self.subresource else {})


@dataclass
class Written:
    """An object after a write, and what the answer warns of."""

    item: Object
    warnings: list[str]
    created: bool = False


class Writer:
    """Writes to the store as the API server's registry does."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store, self._admission = store, admission

    def create(self, resource: Resource, namespace: str, document: Any, options: WriteOptions) -> Written:
        """Create an object. Raises ApiError."""
        item, warnings = decode_document(resource, document, options.strictness)
        metadata = item.setdefault("metadata", {})
        set_namespace(resource, metadata, namespace)
        if metadata.get("resourceVersion") and not options.dry_run:
            raise errors.ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for key in (*_KEPT, "selfLink", "managedFields"):
            metadata.pop(key, None)
        if generated := not metadata.get("name") and bool(metadata.get("generateName")):
            metadata["name"] = metadata["generateName"][:58] + make_suffix()
        metadata |= {"uid": str(uuid4()), "creationTimestamp": timestamp()}
        if resource.kind in _GENERATIONS:
            metadata["generation"] = 1
        if "status" in resource.subresources and resource.kind not in _STATUS_AT_CREATION:
            item.pop("status", None)
        return self._finish_create(resource, item, options, warnings, generated=generated)

    def _finish_create(
        self, resource: Resource, item: Object, options: WriteOptions, warnings: list[str], *, generated: bool = False
    ) -> Written:
        item = join_string_data(item)
        if not item["metadata"].get("name"):
            raise errors.invalid_object(resource, "", validate_object(resource, item))
        if not (missing := validate_object(resource, item)):
            item = fill_defaults(item)
            item["metadata"].setdefault("managedFields", record_update(None, item, options.entry(resource.api_version)))
            item = self._admission.mutate(resource, "CREATE", item)
            missing = validate_object(resource, item)
        if missing:
            raise errors.invalid_object(resource, item["metadata"]["name"], missing)
        warnings += self._admission.validate(resource, "CREATE", item)
        name = item["metadata"]["name"]
        if self._store.find(resource, (item["metadata"].get("namespace", ""), name)):
            raise errors.already_exists(resource, name, generated=generated)
        return Written(item if options.dry_run else self._store.put(item), warnings, created=True)

    def update(self, resource: Resource, key: Key, document: Any, options: WriteOptions) -> Written:
        """Replace an object or its status. Raises ApiError."""
        item, warnings = decode_document(resource, document, options.strictness)
        metadata = item.setdefault("metadata", {})
        set_namespace(resource, metadata, key[0])
        check_name(metadata, key[1])
        if not self._store.find(resource, key) and resource.kind in _CREATED_BY_UPDATE and not options.subresource:
            return self.create(resource, key[0], item, options)
        if not metadata.get("resourceVersion") and resource.kind in _VERSION_NEEDED:
            error = FieldError("metadata.resourceVersion", "Invalid value", "must be specified for an update", 0)
            raise errors.invalid_object(resource, key[1], [error])
        return self._replace(resource, key, item, options, warnings)

    def patch(self, resource: Resource, key: Key, kind: str, body: bytes, options: WriteOptions) -> Written:
        """Patch an object by a content type. Raises ApiError."""
        if kind == "application/apply-patch+yaml":
            return self._apply(resource, key, parse_body(body), options)
        if kind not in _PATCHES:
            raise errors.ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        live = self._live(resource, key)
        patch = parse_body(body, allow_yaml=False)
        if kind == "application/json-patch+json":
            changed = apply_json_patch(live, patch)
        elif not isinstance(patch, dict):
            why = "json: cannot unmarshal array into Go value of type map[string]interface {}"
            raise errors.bad_request(
                why if kind.startswith("application/strategic") else f"error decoding patch: {why}"
            )
        elif kind == "application/merge-patch+json":
            changed = apply_merge_patch(live, patch)
        else:
            schema = {"$ref": f"#/$defs/{definition_of(resource.api_version, resource.kind)}"}
            changed = apply_strategic_patch(schema, live, patch)
        try:
            changed, warnings = decode_document(resource, changed, options.strictness)
        except errors.ApiError as error:
            shown = f"map[{' '.join(patch)}]" if kind.startswith("application/strategic") else json.dumps(changed)
            raise errors.invalid_patch(shown, error.message.partition(f"handled as a {resource.kind}: ")[2]) from error
        check_name(changed.get("metadata", {}), key[1])
        if changed["metadata"].get("uid") != live["metadata"]["uid"]:
            immutable = FieldError(
                "metadata.uid", "Invalid value", "field is immutable", changed["metadata"].get("uid")
            )
            raise errors.invalid_object(resource, key[1], [immutable, immutable])
        return self._replace(resource, key, changed, options, warnings)

    def _apply(self, resource: Resource, key: Key, document: Any, options: WriteOptions) -> Written:
        if not options.manager:
            error = FieldError("fieldManager", "Required value", "is required for apply patch")
            raise errors.invalid_options("PatchOptions", error)
        if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
            raise errors.bad_request("invalid object type: /, Kind=")
        config, warnings = decode_document(resource, document, options.strictness)
        metadata = config.setdefault("metadata", {})
        set_namespace(resource, metadata, key[0])
        if "managedFields" in metadata:
            raise errors.bad_request("metadata.managedFields must be nil")
        entry = options.entry(resource.api_version, "Apply")
        stored = self._store.find(resource, key)
        check_name(metadata if stored is None else {"name": key[1], **metadata}, key[1])
        if stored is None:
            config = {"apiVersion": resource.api_version, "kind": resource.kind, **config}
            empty: Object = {**config, "metadata": {}}
            owners = apply_configuration(empty, config, entry, force=False)["metadata"]["managedFields"]
            metadata |= {"uid": str(uuid4()), "creationTimestamp": timestamp(), "managedFields": owners}
            if resource.kind in _GENERATIONS:
                metadata["generation"] = 1
            return self._finish_create(resource, config, options, warnings)
        if metadata.get("resourceVersion", str(stored.version)) != str(stored.version):
            raise errors.conflict(resource, key[1])
        config = {"apiVersion": resource.api_version, "kind": resource.kind, **config}
        merged = apply_configuration(stored.object, config, entry, force=options.force)
        return self._replace(resource, key, merged, options, warnings, owners=merged["metadata"]["managedFields"])

    def _replace(
        self, resource: Resource, key: Key, item: Object, options: WriteOptions, warnings: list[str],
        owners: list[Object] | None = None,
    ) -> Written:  # fmt: skip
        live = self._live(resource, key)
        given, kept = item["metadata"], live["metadata"]
        if given.get("uid", kept["uid"]) != kept["uid"]:
            why = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {kept['uid']}"
            raise errors.conflict(resource, key[1], why)
        if not (version := given.get("resourceVersion", kept["resourceVersion"])).isdecimal():
            raise errors.ApiError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version != kept["resourceVersion"]:
            raise errors.conflict(resource, key[1])
        base = {
            **live,
            "metadata": {**kept, "managedFields": given.get("managedFields") or kept.get("managedFields", [])},
        }
        metadata = {**given, **{name: kept[name] for name in _KEPT if name in kept}}
        metadata = {name: value for name, value in metadata.items() if name in kept or name not in _KEPT}
        item = fill_defaults(join_string_data({**item, "metadata": metadata}))
        if options.subresource == "status":
            metadata = {**kept, **({name: given[name] for name in ("labels", "annotations") if name in given}
                                   if resource.kind == "Pod" else {})}  # fmt: skip
            item = {**live, "metadata": metadata, "status": item.get("status", {})}
        elif "status" in resource.subresources:
            item = {**item, "status": live["status"]} if "status" in live else _without_status(item)
        if resource.kind in _GENERATIONS and item.get("spec") != live.get("spec"):
            item["metadata"] = {**item["metadata"], "generation": kept["generation"] + 1}
        owners = owners or record_update(base, item, options.entry(resource.api_version))
        item = self._admission.mutate(resource, "UPDATE", item)
        if found := validate_update(resource, live, item):
            raise errors.invalid_object(resource, key[1], found)
        warnings += self._admission.validate(resource, "UPDATE", item)
        item["metadata"] = {**item["metadata"], "managedFields": owners}
        if _same(item, live):
            return Written(live, warnings)
        if options.dry_run:
            return Written(item, warnings)
        return Written(self._put_or_finish(item), warnings)

    def _put_or_finish(self, item: Object) -> Object:
        """Store an object, or remove it when nothing holds its deletion any more."""
        metadata = item["metadata"]
        held = metadata.get("finalizers") or item.get("spec", {}).get("finalizers")
        if metadata.get("deletionTimestamp") and not held and not metadata.get("deletionGracePeriodSeconds"):
            stored = self._store.put(item)
            self._store.remove(stored)
            return stored
        return self._store.put(item)

    def change(self, item: Object, edit: Callable[[Object], Object]) -> Object | None:
        """Change an object from inside the cluster, as a controller does; None if it is gone."""
        live = self._store.get(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
        if live is None or live["metadata"]["uid"] != item["metadata"]["uid"]:
            return None
        changed = edit(live)
        return live if changed == live else self._put_or_finish(changed)

    def delete(self, resource: Resource, key: Key, options: Object, *, dry_run: bool = False) -> tuple[Object, bool]:
        """Delete an object or begin its deletion; return it and whether it is gone. Raises ApiError."""
        live = self._live(resource, key)
        _check_preconditions(resource, live, options.get("preconditions") or {})
        dry_run = dry_run or options.get("dryRun") == ["All"]
        metadata = dict(live["metadata"])
        policy = options.get("propagationPolicy") or {True: "Orphan", False: "Background"}.get(
            options.get("orphanDependents", False)
        )
        holders = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
        finalizers = [one for one in metadata.get("finalizers", ()) if one not in holders.values()]
        finalizers += [holders[policy]] if policy in holders else []
        grace = _grace_period(live, options)
        if pending := metadata.get("deletionGracePeriodSeconds"):
            if grace >= pending:
                return live, False
            started = datetime.fromisoformat(metadata["deletionTimestamp"]) - timedelta(seconds=pending)
            ends = max(started + timedelta(seconds=grace), datetime.now(UTC))
            metadata["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        elif "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = timestamp(grace)
            metadata |= {"generation": metadata["generation"] + 1} if "generation" in metadata else {}
        metadata["deletionGracePeriodSeconds"] = grace
        metadata = {**metadata, "finalizers": finalizers} if finalizers else _without(metadata, "finalizers")
        item = {**live, "metadata": metadata}
        if resource.kind == "Namespace" and live["spec"].get("finalizers"):
            metadata.pop("deletionGracePeriodSeconds")
            item |= {"status": {**live["status"], "phase": "Terminating"}}
            return (item if dry_run or _same(item, live) else self._store.put(item)), False
        if grace or finalizers:
            return (item if dry_run or _same(item, live) else self._store.put(item)), False
        if resource.kind != "Pod":
            return (live if dry_run else self._store.remove(live)), True
        return (item if dry_run else self._store.remove(self._store.put(item))), True

    def _live(self, resource: Resource, key: Key) -> Object:
        found = self._store.find(resource, key)
        if found is None:
            raise errors.not_found(resource, key[1])
        return found.object


def returns_object(resource: Resource, *, gone: bool) -> bool:
    """Return whether the answer to a deletion is the object; it is a `Status` otherwise."""
    return not gone or resource.kind in _RETURNED


def _check_preconditions(resource: Resource, live: Object, wanted: Object) -> None:
    name, metadata = live["metadata"]["name"], live["metadata"]
    for key, shown, end in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        if wanted.get(key, metadata[key]) != metadata[key]:
            why = (f"the {shown} in the precondition ({wanted[key]}) does not match the {shown} in record "
                   f"({metadata[key]}). {end}")  # fmt: skip
            details = {"name": name, "group": resource.group, "kind": resource.kind}
            message = f'Operation cannot be fulfilled on {resource.qualified_kind} "{name}": {why}'
            raise errors.ApiError(409, "Conflict", message, {key: one for key, one in details.items() if one})


def _grace_period(live: Object, options: Object) -> int:
    if live["kind"] != "Pod":
        return 0
    grace = options.get("gracePeriodSeconds")
    if grace is None:
        grace = live["metadata"].get(
            "deletionGracePeriodSeconds", live["spec"].get("terminationGracePeriodSeconds", 30)
        )
    if not live["spec"].get("nodeName") or live["status"].get("phase") in {"Failed", "Succeeded"}:
        return 0
    return 1 if grace < 0 else grace


def _same(one: Object, other: Object) -> bool:
    def comparable(item: Object) -> Object:
        entries = [_without(entry, "time") for entry in item["metadata"].get("managedFields", ())]
        return {**item, "metadata": {**item["metadata"], "managedFields": entries, "resourceVersion": ""}}

    return comparable(one) == comparable(other)


def _without(item: Object, key: str) -> Object:
    return {name: value for name, value in item.items() if name != key}


def _without_status(item: Object) -> Object:
    return _without(item, "status")
