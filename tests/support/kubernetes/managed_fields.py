"""Server-side apply: which manager owns which field, conflicts between them, and merges by the OpenAPI."""

import json
from typing import Any

from tests.support.kubernetes.errors import ApiError
from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.schemas import definition_of, resolve

Path = tuple[str, ...]
"""Parts as `managedFields` writes them: `f:name`, `k:{"name":"main"}`, `v:"value"`, `.` for the item itself."""

_SYSTEM = {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
           "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}  # fmt: skip
_KEY_DEFAULTS = {"protocol": "TCP"}


def flatten_fields(item: Object, *, status: bool = False) -> dict[Path, Any]:
    """Return the owned fields of an object and their values; `status` instead of all others if wanted."""
    parts = {key: value for key, value in item.items() if key not in {"apiVersion", "kind"}}
    parts["metadata"] = {key: value for key, value in item["metadata"].items() if key not in _SYSTEM}
    parts = {key: value for key, value in parts.items() if (key == "status") is status and (key != "metadata" or value)}
    found: dict[Path, Any] = {}
    _flatten(_schema_of(item), parts, (), found)
    return found


def _schema_of(item: Object) -> Object:
    return {"$ref": f"#/$defs/{definition_of(item['apiVersion'], item['kind'])}"}


def _flatten(schema: Object, value: Any, path: Path, found: dict[Path, Any]) -> None:
    plain = resolve(schema)
    atomic = schema.get("x-kubernetes-map-type", plain.get("x-kubernetes-map-type")) == "atomic"
    if isinstance(value, dict) and value and not atomic and _is_granular(plain):
        for key, one in value.items():
            inner = plain.get("properties", {}).get(key) or plain.get("additionalProperties") or {}
            _flatten(inner if isinstance(inner, dict) else {}, one, (*path, f"f:{key}"), found)
    elif isinstance(value, list) and (kind := plain.get("x-kubernetes-list-type")) in {"map", "set"}:
        for one in value:
            here = (*path, _item_part(plain, one))
            found[(*here, ".") if kind == "map" else here] = one if kind == "set" else None
            if kind == "map":
                for key, inner in one.items():
                    properties = resolve(plain["items"]).get("properties", {})
                    _flatten(properties.get(key, {}), inner, (*here, f"f:{key}"), found)
    else:
        found[path] = value


def _is_granular(plain: Object) -> bool:
    return "properties" in plain or isinstance(plain.get("additionalProperties"), dict)


def _item_part(plain: Object, item: Any) -> str:
    keys: list[str] = plain.get("x-kubernetes-list-map-keys") or []
    if plain["x-kubernetes-list-type"] == "set":
        return f"v:{json.dumps(item)}"
    return "k:" + json.dumps({key: item.get(key, _KEY_DEFAULTS.get(key)) for key in keys}, separators=(",", ":"))


def _encode(paths: set[Path]) -> Object:
    found: Object = {}
    for path in sorted(paths):
        node = found
        for part in path:
            node = node.setdefault(part, {})
    return found


def _decode(fields: Object, path: Path = ()) -> set[Path]:
    found: set[Path] = set()
    for part, inner in fields.items():
        here = (*path, part)
        found |= _decode(inner, here) if inner else {here}
    return found


class Ownership:
    """The managers of one object, read from its `managedFields`."""

    def __init__(self, item: Object | None) -> None:
        entries = item["metadata"].get("managedFields", ()) if item else ()
        self._sets = {_identity(one): _decode(one["fieldsV1"]) for one in entries}
        self._entries = {_identity(one): one for one in entries}

    def record(self, entry: Object, owned: set[Path], *, touched: set[Path], removed: set[Path]) -> list[Object]:
        """Return the new `managedFields` after a manager's write.

        The entry's set becomes `owned`; all others lose the paths that it touched or removed.
        """
        mine = _identity(entry)
        for one in self._sets:
            self._sets[one] -= removed if one == mine else touched | removed
        if owned:
            self._sets[mine] = owned
        else:
            self._sets.pop(mine, None)
        kept = {one: self._entries.get(one, entry) for one in self._sets}
        kept = {one: (entry if one == mine else value) for one, value in kept.items()}
        return [{**value, "fieldsV1": _encode(self._sets[one])} for one, value in kept.items() if self._sets[one]]

    def set_of(self, entry: Object) -> set[Path]:
        return set(self._sets.get(_identity(entry), ()))

    def others(self, entry: Object) -> dict[str, set[Path]]:
        """Return the sets of the other managers by how a conflict names them."""
        mine = _identity(entry)
        return {
            f'"{one["manager"]}"{_suffix(one)}': self._sets[key] for key, one in self._entries.items() if key != mine
        }


def _identity(entry: Object) -> tuple[str, str, str]:
    return entry["manager"], entry["operation"], entry.get("subresource", "")


def _suffix(entry: Object) -> str:
    shown = f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
    return f"{shown} using {entry['apiVersion']}" if entry["operation"] == "Update" else shown


def record_update(before: Object | None, now: Object, entry: Object) -> list[Object]:
    """Return the `managedFields` after a create, an update or a patch: its manager owns what changed."""
    status = entry.get("subresource") == "status"
    old = _with_maps(flatten_fields(before, status=status)) if before else {}
    new = _with_maps(flatten_fields(now, status=status))
    changed = {path for path, value in new.items() if path not in old or old[path] != value}
    owners = Ownership(before)
    return owners.record(entry, owners.set_of(entry) | changed, touched=changed, removed=set(old) - set(new))


def _with_maps(fields: dict[Path, Any]) -> dict[Path, Any]:
    """Add the maps of strings themselves, which an update owns when it makes them."""
    maps = {path[:-1] for path in fields if path[-2:-1] and path[-2] in {"f:labels", "f:annotations", "f:data"}}
    return {**fields, **{(*path, "."): None for path in maps}}


def apply_configuration(live: Object, config: Object, entry: Object, *, force: bool) -> Object:
    """Merge an applied configuration into an object and record its owner. Raises ApiError 409."""
    status = entry.get("subresource") == "status"
    owners, wanted, present = (
        Ownership(live),
        flatten_fields(config, status=status),
        flatten_fields(live, status=status),
    )
    conflicts = [
        (manager, path)
        for manager, owned in owners.others(entry).items()
        for path in sorted(owned & set(wanted))
        if path in present and path[-1] != "." and present[path] != wanted[path]
    ]
    if conflicts and not force:
        raise _conflict(conflicts)
    taken = {path for _, path in conflicts}
    merged = _merge(_schema_of(config), live, {**config, "metadata": {**config["metadata"]}})
    merged["metadata"] = {
        **merged.get("metadata", {}),
        **{key: live["metadata"][key] for key in _SYSTEM & set(live["metadata"])},
    }
    kept = set(wanted).union(*owners.others(entry).values())
    for path in sorted(owners.set_of(entry) - kept, key=len, reverse=True):
        merged = _without(merged, path)
    merged["metadata"]["managedFields"] = owners.record(entry, set(wanted), touched=taken, removed=set())
    return merged


def _conflict(conflicts: list[tuple[str, Path]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": _show_path(path)}
        for manager, path in conflicts
    ]
    managers = list(dict.fromkeys(manager for manager, _ in conflicts))
    plural = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    if len(managers) == 1 and len(conflicts) == 1:
        text = f"conflict with {managers[0]}: {causes[0]['field']}"
    else:
        listed = (
            f"conflicts with {manager}:\n"
            + "\n".join(f"- {_show_path(path)}" for one, path in conflicts if one == manager)
            for manager in managers
        )
        text = "\n".join(listed)
    return ApiError(409, "Conflict", f"Apply failed with {plural}: {text}", {"causes": causes})


def _show_path(path: Path) -> str:
    shown = ""
    for part in path:
        kind, _, text = part.partition(":")
        if kind == "f":
            shown += f".{text}"
        elif kind == "k":
            shown += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(text).items()) + "]"
        elif kind == "v":
            shown += f"[={text}]"
    return shown


def _merge(schema: Object, live: Any, config: Any) -> Any:
    plain = resolve(schema)
    atomic = schema.get("x-kubernetes-map-type", plain.get("x-kubernetes-map-type")) == "atomic"
    if isinstance(config, dict) and isinstance(live, dict) and not atomic and _is_granular(plain):
        found = dict(live)
        for key, value in config.items():
            inner = plain.get("properties", {}).get(key) or plain.get("additionalProperties") or {}
            found[key] = _merge(inner if isinstance(inner, dict) else {}, live.get(key), value)
        return found
    if isinstance(config, list) and isinstance(live, list):
        if plain.get("x-kubernetes-list-type") == "set":
            return [*live, *(one for one in config if one not in live)]
        if plain.get("x-kubernetes-list-type") == "map":
            items = {_item_part(plain, one): one for one in live}
            for one in config:
                key = _item_part(plain, one)
                items[key] = _merge(plain["items"], items.get(key, {}), one)
            return list(items.values())
    return config


def _without(value: Any, path: Path) -> Any:
    """Return the value without the field at a path; values are copied where they change."""
    part, *rest = path
    kind, _, text = part.partition(":")
    if isinstance(value, dict) and kind == "f" and text in value:
        inner = _without(value[text], tuple(rest)) if rest else None
        kept = {key: one for key, one in value.items() if key != text}
        return kept if inner in (None, {}, []) else {**value, text: inner}
    if isinstance(value, list) and kind in {"k", "v"}:
        wanted = json.loads(text)
        if kind == "v":
            return [one for one in value if one != wanted]
        found = [
            (one, all(one.get(key, _KEY_DEFAULTS.get(key)) == known for key, known in wanted.items())) for one in value
        ]
        if list(rest) == ["."]:
            return [one for one, same in found if not same]
        return [_without(one, tuple(rest)) if same else one for one, same in found]
    return value
