"""Protocol Buffers of the few kinds that kubectl and Helm send so: namespaces, secrets, reviews and options."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from tests.support.kubernetes.errors import bad_request
from tests.support.kubernetes.resources import Object

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_MAP, _BYTES_MAP, _TEXTS = "map", "bytes map", "texts"
Fields = dict[int, tuple[str, Any]]
"""Field numbers with names and types: `str`, `int`, `bool`, one of the words above, or the fields of a message."""

_METADATA: Fields = {1: ("name", str), 2: ("generateName", str), 3: ("namespace", str), 5: ("uid", str),
                     6: ("resourceVersion", str), 11: ("labels", _MAP), 12: ("annotations", _MAP),
                     14: ("finalizers", _TEXTS)}  # fmt: skip
_ATTRIBUTES: Fields = {1: ("namespace", str), 2: ("verb", str), 3: ("group", str), 4: ("version", str),
                       5: ("resource", str), 6: ("subresource", str), 7: ("name", str)}  # fmt: skip
_PATH: Fields = {1: ("path", str), 2: ("verb", str)}
_PRECONDITIONS: Fields = {1: ("uid", str), 2: ("resourceVersion", str)}
_KINDS: dict[str, Fields] = {
    "Namespace": {1: ("metadata", _METADATA)},
    "ServiceAccount": {1: ("metadata", _METADATA), 4: ("automountServiceAccountToken", bool)},
    "Secret": {1: ("metadata", _METADATA), 2: ("data", _BYTES_MAP), 3: ("type", str), 4: ("stringData", _MAP),
               5: ("immutable", bool)},
    "ConfigMap": {1: ("metadata", _METADATA), 2: ("data", _MAP), 3: ("binaryData", _BYTES_MAP), 4: ("immutable", bool)},
    "SelfSubjectAccessReview": {
        2: ("spec", {1: ("resourceAttributes", _ATTRIBUTES), 2: ("nonResourceAttributes", _PATH)}),
    },
    "DeleteOptions": {1: ("gracePeriodSeconds", int), 2: ("preconditions", _PRECONDITIONS),
                      3: ("orphanDependents", bool), 4: ("propagationPolicy", str), 5: ("dryRun", _TEXTS)},
}  # fmt: skip


def decode_protobuf(body: bytes, kind: str) -> Object:
    """Return the object of a body with the envelope of Kubernetes. Raises ApiError 400."""
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_read_fields(body[len(_MAGIC) :]))
    version = {number: value.decode() for number, value in _read_fields(envelope[1])}
    if version.get(2, kind) not in _KINDS:
        raise bad_request(f"the fake API server does not decode {version.get(2, kind)} as Protocol Buffers")
    item = _read_message(envelope[2], _KINDS[version.get(2, kind)])
    return {**item, **({"apiVersion": version[1], "kind": version[2]} if len(version) == 2 else {})}


def _read_message(data: bytes, fields: Fields) -> Object:
    found: Object = {}
    for number, value in _read_fields(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if isinstance(kind, dict):
            found[name] = _read_message(value, kind)
        elif kind is _TEXTS:
            found.setdefault(name, []).append(value.decode())
        elif kind in {_MAP, _BYTES_MAP}:
            entry = {1: b"", 2: b"", **dict(_read_fields(value))}
            shown = b64encode(entry[2]) if kind == _BYTES_MAP else entry[2]
            found.setdefault(name, {})[entry[1].decode()] = shown.decode()
        elif kind is not str:
            found[name] = kind(value)
        elif value:
            found[name] = value.decode()
    return found


def _read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _read_number(data, at)
        if key & 7 == 2:
            size, at = _read_number(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == 0:
            value, at = _read_number(data, at)
            yield key >> 3, value
        else:
            raise bad_request(f"unexpected wire type {key & 7}")


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return found, at
