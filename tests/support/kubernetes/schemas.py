"""The published OpenAPI of Kubernetes: decodes incoming objects as its Go types do and checks outgoing ones."""

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests.support.kubernetes.errors import FieldError, bad_request
from tests.support.kubernetes.quantities import normalize_quantity
from tests.support.kubernetes.resources import CUSTOM, Object, Resource

_FOLDER = "kubernetes-json-schema/v1.36.0-local-strict"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_JSON_TYPES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
_STRING = {"type": "string"}
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


class SchemaViolation(AssertionError):  # noqa: N818 - as jsonschema names it
    """The fake made an object that the published OpenAPI refuses."""


@cache
def definitions() -> dict[str, Object]:
    """Return every definition of the OpenAPI by its name, also those of custom resources."""
    spec = find_spec("kubernetes_validate")
    assert spec, "the package kubernetes-validate is not installed"
    assert spec.submodule_search_locations
    text = (Path(spec.submodule_search_locations[0]) / _FOLDER / "_definitions.json").read_text()
    return json.loads(text)["$defs"] | {name: one for crd in CUSTOM.values() for name, one in _publish(crd["spec"])}


def _publish(spec: Object) -> Iterator[tuple[str, Object]]:
    """Yield the definitions of a custom resource and of its lists by name, as the API server publishes them."""
    (version,), kind, strings = spec["versions"], spec["names"]["kind"], {"apiVersion": _STRING, "kind": _STRING}
    prefix = ".".join((*reversed(spec["group"].split(".")), version["name"], ""))
    schema = _close(version["schema"]["openAPIV3Schema"])
    own = {**strings, "metadata": {"$ref": f"#/$defs/{META}ObjectMeta"}}
    items = {"type": "array", "items": {"$ref": f"#/$defs/{prefix}{kind}"}}
    listed = {**strings, "metadata": {"$ref": f"#/$defs/{META}ListMeta"}, "items": items}
    for name, one in (
        (kind, {**schema, "properties": {**own, **schema["properties"]}}),
        (f"{kind}List", {"type": "object", "properties": listed, "required": ["items"]}),
    ):
        named = {"group": spec["group"], "kind": name, "version": version["name"]}
        yield f"{prefix}{name}", {**one, "x-kubernetes-group-version-kind": [named]}


def _close(schema: Any) -> Any:
    """Return a schema that accepts no fields but those that it names, as the other definitions do."""
    if isinstance(schema, list):
        return [_close(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _close(one) for name, one in schema.items()}
    return found | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else found


@cache
def definition_of(api_version: str, kind: str) -> str:
    """Return the name of the definition of a kind."""
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "kind": kind, "version": version}
    found = [name for name, one in definitions().items() if wanted in one.get("x-kubernetes-group-version-kind", ())]
    return found[0]


def resolve(schema: Object) -> Object:
    return definitions()[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


@cache
def _validator(definition: str) -> Any:
    needed = {name: definitions()[name] for name in _reachable(definition)}
    draft = "https://json-schema.org/draft/2020-12/schema"
    schema = {"$schema": draft, "$ref": f"#/$defs/{definition}", "$defs": needed}
    return jsonschema_rs.validator_for(schema, validate_formats=True, formats={"byte": _is_base64})


def check_object(item: Object) -> None:
    """Raise SchemaViolation unless the published schema of its kind accepts the object."""
    check_definition(definition_of(item.get("apiVersion", "v1"), item["kind"]), item)


def check_definition(definition: str, item: Object) -> None:
    for error in _validator(definition).iter_errors(item):
        path = ".".join(str(part) for part in error.instance_path)
        raise SchemaViolation(f"{definition} at {path}: {error.message} in {json.dumps(item)[:2000]}")


@dataclass
class Decoder:
    """Decodes an incoming object: drops unknown fields into `unknown` and nulls, refuses values of a wrong type.

    is_typed: False for custom resources, which are no Go types: `schema_errors` finds wrong values in them.
    """

    api_version: str
    kind: str
    unknown: list[str] = field(default_factory=list[str])
    is_typed: bool = True

    def decode(self, value: Any) -> Object:
        """Return the object as its Go type holds it. Raises ApiError 400."""
        if not isinstance(value, dict):
            raise self._refuse(f"json: cannot unmarshal {_json_type(value)} into Go value of type v1.{self.kind}")
        name = definition_of(self.api_version, self.kind)
        return self._walk({"$ref": f"#/$defs/{name}"}, value, "", (self.kind, ""))

    def _walk(self, schema: Object, value: Any, path: str, owner: tuple[str, str]) -> Any:
        plain = resolve(schema)
        types = plain.get("type", "any")
        names = {types} if isinstance(types, str) else set(types)
        if "properties" in plain and isinstance(value, dict):
            struct = schema["$ref"].rpartition(".")[2] if "$ref" in schema else self.kind
            return self._walk_struct(plain, value, path, (struct, owner[1]))
        if not names & {"any", *_schema_types(value)} and "oneOf" not in plain:
            if self.is_typed or path.partition(".")[0] == "metadata":
                raise self._mistyped(schema, value, owner)
            return value
        if "oneOf" in plain and not any(set(one["type"]) & _schema_types(value) for one in plain["oneOf"]):
            raise self._mistyped(schema, value, owner)
        if schema.get("$ref", "").endswith(".Quantity"):
            try:
                return normalize_quantity(value)
            except ValueError as error:
                raise self._refuse(str(error)) from error
        if isinstance(value, dict) and "additionalProperties" in plain and plain["additionalProperties"] is not False:
            inner = plain["additionalProperties"]
            kept = {key: one for key, one in value.items() if one is not None or "$ref" not in inner}
            return {key: self._walk(inner, "" if one is None else one, f"{path}.{key}", owner)
                    for key, one in kept.items()}  # fmt: skip
        if isinstance(value, list):
            return [self._walk(plain.get("items", {}), one, f"{path}[{index}]", owner)
                    for index, one in enumerate(value)]  # fmt: skip
        if plain.get("format") == "date-time":
            return self._read_time(str(schema.get("$ref", "")).endswith("MicroTime"), value)
        if plain.get("format") == "byte" and not _is_base64(value):
            raise self._refuse("illegal base64 data at input byte 0")
        return value

    def _read_time(self, micro: bool, value: Any) -> str:
        form = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
        found = _TIME.fullmatch(value)
        if not found:
            raise self._refuse(f'parsing time "{value}" as "{form}": cannot parse "{value}" as "2006"')
        if micro and not (found[1] or "").startswith("."):
            raise self._refuse(f'parsing time "{value}" as "{form}": cannot parse "{found[2]}" as ".000000"')
        moment = datetime.fromisoformat(value).astimezone(UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")

    def _walk_struct(self, plain: Object, value: Object, path: str, owner: tuple[str, str]) -> Object:
        found: Object = {}
        for key, one in value.items():
            here = f"{path}.{key}" if path else key
            if key not in plain["properties"]:
                self.unknown.append(f'unknown field "{here}"')
            elif one is not None:
                place = f"{owner[1]}.{key}" if owner[1] else key
                found[key] = self._walk(plain["properties"][key], one, here, (owner[0], place))
        return found

    def _mistyped(self, schema: Object, value: Any, owner: tuple[str, str]) -> Exception:
        place = f"Go struct field {owner[0]}.{owner[1]}"
        return self._refuse(f"json: cannot unmarshal {_json_type(value)} into {place} of type {_go_type(schema)}")

    def _refuse(self, why: str) -> Exception:
        version = self.api_version.rpartition("/")[2]
        return bad_request(f'{self.kind} in version "{version}" cannot be handled as a {self.kind}: {why}')

    def refuse_unknown(self) -> None:
        """Raise ApiError 400 if there were unknown fields, as `fieldValidation=Strict` does."""
        if self.unknown:
            raise self._refuse(f"strict decoding error: {', '.join(self.unknown)}")


def schema_errors(definition: str, item: Object) -> Iterator[FieldError]:
    """Yield what the schema of a custom resource refuses in an object."""
    for error in _validator(definition).iter_errors(item):
        found, place = error.kind.as_dict(), ""
        for part in error.instance_path:
            place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
        match error.kind.name:
            case "required":
                yield FieldError(".".join(filter(None, (place, found["property"]))), "Required value")
            case "type":
                given = min(_schema_types(error.instance)) or "null"
                detail = f'{place} in body must be of type {found["types"][0]}: "{given}"'
                yield FieldError(place, "Invalid value", detail, given)
            case "enum":
                detail = "supported values: " + ", ".join(json.dumps(one) for one in found["options"])
                yield FieldError(place, "Unsupported value", detail, error.instance)
            case "pattern":
                detail = f"{place} in body should match '{found['pattern']}'"
                yield FieldError(place, "Invalid value", detail, error.instance)
            case "maxItems":
                yield FieldError(place, "Too many", f"must have at most {found['limit']} items", len(error.instance))
            case _:
                yield FieldError(place, "Invalid value", error.message, error.instance)


def missing_fields(definition: str, value: Any) -> Iterator[str]:
    """Yield the paths of fields that the schema requires and the object lacks."""
    yield from _missing({"$ref": f"#/$defs/{definition}"}, value, "")


def _missing(schema: Object, value: Any, path: str) -> Iterator[str]:
    plain = resolve(schema)
    if isinstance(value, dict) and "properties" in plain:
        for name in plain.get("required", ()):
            if value.get(name) in (None, [], ""):
                yield f"{path}.{name}" if path else name
        for name, one in value.items():
            if name in plain["properties"] and (path or name != "status"):
                yield from _missing(plain["properties"][name], one, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and "items" in plain:
        for index, one in enumerate(value):
            yield from _missing(plain["items"], one, f"{path}[{index}]")


def group_document(api_version: str, resources: Collection[Resource]) -> Object:
    """Return the OpenAPI v3 document of one API version, from which kubectl reads merge keys and query parameters."""
    prefix = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    names: set[str] = set()
    paths: Object = {}
    for one in resources:
        if one.api_version == api_version:
            names |= _reachable(definition_of(one.api_version, one.kind))
            where = "namespaces/{namespace}/" if one.namespaced else ""
            queries = ("dryRun", "fieldManager", "fieldValidation", "force")
            queries = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in queries]
            kind = {"group": one.group, "kind": one.kind, "version": one.version}
            operation = {"parameters": queries, "responses": {}, "x-kubernetes-group-version-kind": kind}
            paths[f"{prefix}/{where}{one.plural}"] = {"post": {**operation, "x-kubernetes-action": "post"}}
            paths[f"{prefix}/{where}{one.plural}/{{name}}"] = {"patch": {**operation, "x-kubernetes-action": "patch"}}
    text = json.dumps({name: definitions()[name] for name in names}).replace("#/$defs/", "#/components/schemas/")
    schemas = json.loads(text, object_hook=_without_null)
    info = {"title": "Kubernetes", "version": "v1.36.0"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _without_null(one: Object) -> Object:
    if isinstance(one.get("type"), list):
        one["type"] = one["type"][0]
    return {key: value for key, value in one.items() if (key, value) != ("additionalProperties", False)}


@cache
def _reachable(definition: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [definition]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(definitions()[name])
    return frozenset(found)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for one in schema.values():
            yield from _references(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _references(one)


def _is_base64(value: Any) -> bool:
    try:
        return bool(b64decode(value, validate=True)) or not value
    except (binascii.Error, TypeError):
        return False


def _json_type(value: Any) -> str:
    return _JSON_TYPES.get(type(value), "null")


def _schema_types(value: Any) -> set[str]:
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    return {{"string": "string", "number": "number", "object": "object", "array": "array"}.get(_json_type(value), "")}


def _go_type(schema: Object) -> str:
    if "$ref" in schema:
        return f"v1.{schema['$ref'].rpartition('.')[2]}"
    types = schema.get("type", "")
    name = types if isinstance(types, str) else types[0]
    if name == "array":
        return f"[]{_go_type(schema['items'])}"
    if name == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map[string]{_go_type(schema['additionalProperties'])}"
    return {"integer": schema.get("format", "int64"), "boolean": "bool", "number": "float64"}.get(name, name)
