"""Documents of requests: parsed, decoded by the OpenAPI, and matched with the path that they were sent to."""

import json
from base64 import b64encode
from typing import Any

import yaml

from tests.support.kubernetes import errors
from tests.support.kubernetes.resources import BY_KIND, Object, Resource
from tests.support.kubernetes.schemas import Decoder


def parse_body(body: bytes, *, allow_yaml: bool = True) -> Any:
    """Return the document of a request body. Raises ApiError 400."""
    try:
        return json.loads(body)
    except ValueError as error:
        try:
            found = yaml.load(body, yaml.CSafeLoader) if allow_yaml else None
        except yaml.YAMLError:
            found = None
        if isinstance(found, dict):
            return json.loads(json.dumps(found, default=str))
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from error


def decode_document(resource: Resource, document: Any, strictness: str) -> tuple[Object, list[str]]:
    given = document if isinstance(document, dict) else {}
    kind, version = given.get("kind") or resource.kind, given.get("apiVersion") or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
        if kind != resource.kind and kind in BY_KIND:
            why = f"converting ({resource.version}.{kind}) to (core.{resource.kind}): unknown conversion"
        raise errors.bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}')
    decoder = Decoder(resource.api_version, resource.kind, is_typed=not resource.is_custom)
    item = decoder.decode(document)
    if strictness == "Strict":
        decoder.refuse_unknown()
    warnings = decoder.unknown if strictness == "Warn" else []
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}, list(warnings)


def check_name(metadata: Object, wanted: str) -> None:
    name = metadata.get("name")
    if not name:
        raise errors.bad_request(
            f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )
    if name != wanted:
        raise errors.bad_request(f"the name of the object ({name}) does not match the name on the URL ({wanted})")


def set_namespace(resource: Resource, metadata: Object, namespace: str) -> None:
    if resource.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not resource.namespaced:
        metadata.pop("namespace", None)


def join_string_data(item: Object) -> Object:
    if item["kind"] != "Secret" or "stringData" not in item:
        return item
    data = {key: b64encode(value.encode()).decode() for key, value in item["stringData"].items()}
    return {
        **{key: value for key, value in item.items() if key != "stringData"},
        "data": {**item.get("data", {}), **data},
    }
