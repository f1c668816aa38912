"""JSON patch, JSON merge patch, and strategic merge patch by the merge keys in the OpenAPI."""

import json
from copy import deepcopy
from typing import Any

from tests.support.kubernetes.errors import bad_request, unprocessable
from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.schemas import resolve

_NOT_A_LIST = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
_RETAIN, _DIRECTIVE, _ORDER, _DELETE_PRIMITIVES = (
    "$retainKeys",
    "$patch",
    "$setElementOrder/",
    "$deleteFromPrimitiveList/",
)


def apply_json_patch(item: Object, operations: Any) -> Object:
    """Return the patched object (RFC 6902). Raises ApiError 400 and 422."""
    if not isinstance(operations, list):
        raise bad_request(f"error decoding patch: {_NOT_A_LIST}")
    found: Any = deepcopy(item)
    for one in operations:
        path, operation = one.get("path", ""), one.get("op")
        try:
            if operation in {"move", "copy"}:
                value = deepcopy(_look_up(found, one["from"]))
                if operation == "move":
                    _set(found, "remove", one["from"], None)
                found = _set(found, "add", path, value)
            elif operation == "test":
                if _look_up(found, path) != one.get("value"):
                    raise unprocessable()
            elif operation in {"add", "replace", "remove"}:
                found = _set(found, operation, path, deepcopy(one.get("value")))
            else:
                raise unprocessable()
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise unprocessable() from error
    return found


def apply_merge_patch(item: Any, patch: Any) -> Any:
    """Return the patched value (RFC 7386)."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    found = dict(item) if isinstance(item, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = apply_merge_patch(found.get(key), value)
    return found


def apply_strategic_patch(schema: Object, item: Any, patch: Object) -> Object:
    """Return the patched object; lists with a merge key in the schema are merged by it."""
    plain = resolve(schema)
    directive = patch.get(_DIRECTIVE)
    rest = {key: value for key, value in patch.items() if not key.startswith("$")}
    if directive == "replace":
        return rest
    found = dict(item) if isinstance(item, dict) else {}
    if _RETAIN in patch:
        found = {key: value for key, value in found.items() if key in patch[_RETAIN]}
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            name = key.removeprefix(_DELETE_PRIMITIVES)
            found[name] = [one for one in found.get(name, []) if one not in value]
    for key, value in rest.items():
        inner = plain.get("properties", {}).get(key) or plain.get("additionalProperties") or {}
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            if value.get(_DIRECTIVE) == "delete":
                found.pop(key, None)
            else:
                found[key] = apply_strategic_patch(inner, found.get(key), value)
        elif isinstance(value, list) and "merge" in inner.get("x-kubernetes-patch-strategy", "").split(","):
            found[key] = _merge_lists(inner, found.get(key) or [], value)
        else:
            found[key] = value
    for key, order in patch.items():
        if key.startswith(_ORDER) and (name := key.removeprefix(_ORDER)) in found:
            merge_key = plain.get("properties", {}).get(name, {}).get("x-kubernetes-patch-merge-key")
            found[name] = sorted(found[name], key=lambda one: _position(order, one, merge_key))
    return found


def _merge_lists(schema: Object, old: list[Any], patch: list[Any]) -> list[Any]:
    key = schema.get("x-kubernetes-patch-merge-key")
    if not key:
        return [*old, *(one for one in patch if one not in old)]
    if any(one == {_DIRECTIVE: "replace"} for one in patch):
        return [one for one in patch if _DIRECTIVE not in one]
    found = list(old)
    for one in patch:
        if key not in one:
            raise bad_request(f"map: {json.dumps(one)} does not contain declared merge key: {key}")
        at = next((index for index, present in enumerate(found) if present.get(key) == one[key]), None)
        if one.get(_DIRECTIVE) == "delete":
            found = [present for present in found if present.get(key) != one[key]]
        elif at is None:
            found.append(apply_strategic_patch(schema["items"], {}, one))
        else:
            found[at] = apply_strategic_patch(schema["items"], found[at], one)
    return found


def _position(order: list[Any], one: Any, merge_key: str | None) -> int:
    wanted = {merge_key: one.get(merge_key)} if merge_key else one
    return order.index(wanted) if wanted in order else len(order)


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _look_up(found: Any, path: str) -> Any:
    for part in _parts(path):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def _set(found: Any, operation: str, path: str, value: Any) -> Any:
    if not path:
        return value
    *parents, last = _parts(path)
    owner = _look_up(found, "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parents))
    if isinstance(owner, list):
        at = len(owner) if last == "-" else int(last)
        if not 0 <= at <= len(owner) - (operation != "add"):
            raise IndexError(at)
        if operation == "add":
            owner.insert(at, value)
        elif operation == "replace":
            owner[at] = value
        else:
            del owner[at]
    elif operation == "remove":
        del owner[last]
    else:
        owner[last] = value
    return found
