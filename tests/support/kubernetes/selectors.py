"""Label selectors and field selectors, with the fields that each kind has."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.kubernetes.errors import bad_request
from tests.support.kubernetes.resources import Object, Resource

_FIELDS = {
    "Pod": "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase "
    "status.podIP status.nominatedNodeName",
    "Event": "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid "
    "involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent "
    "source type",
    "Secret": "type",
    "Namespace": "status.phase",
    "Node": "spec.unschedulable",
    "Job": "status.successful",
}
_SET = re.compile(r"^\s*([\w./-]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_EQUALS = re.compile(r"^\s*([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([\w./-]+)\s*$")
_COMMA = re.compile(r",(?![^(]*\))")

Test = Callable[[Object], bool]


@dataclass(frozen=True)
class Selector:
    """What a list, a watch or a deletion of a collection selects."""

    tests: list[Test] = field(default_factory=list[Test])
    name: str = ""

    def matches(self, item: Object) -> bool:
        return all(test(item) for test in self.tests)


def parse_selectors(resource: Resource, labels: str, fields: str) -> Selector:
    """Return the selector of two query parameters. Raises ApiError 400."""
    tests = [_label_test(part) for part in _COMMA.split(labels) if part.strip()]
    name = ""
    for part in fields.split(",") if fields else ():
        path, operator, value = re.split(r"(==|!=|=)", part, maxsplit=1) if "=" in part else (part, "", "")
        if not operator:
            raise bad_request(f"invalid selector: '{fields}'; can't understand '{part}'")
        allowed = {"metadata.name", *(["metadata.namespace"] if resource.namespaced else [])}
        if path not in allowed | set(_FIELDS.get(resource.kind, "").split()):
            if resource.kind in _FIELDS:
                raise bad_request(f"field label not supported: {path}")
            raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        tests.append(_field_test(path, operator == "!=", value))
        name = value if path == "metadata.name" and operator != "!=" else name
    return Selector(tests, name)


def match_labels(selector: Object | None, labels: Object) -> bool:
    """Return whether a `LabelSelector` object, as network policies and budgets have it, selects these labels."""
    if selector is None:
        return False
    tests = [labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()]
    for one in selector.get("matchExpressions", ()):
        present, value = one["key"] in labels, labels.get(one["key"])
        operator, values = one["operator"], one.get("values", [])
        tests.append(
            {"In": value in values, "NotIn": value not in values, "Exists": present}.get(operator, not present)
        )
    return all(tests)


def field_value(item: Object, path: str) -> str:
    """Return the field at a path as a selector compares it."""
    if path == "source" and item.get("kind") == "Event":
        return item.get("source", {}).get("component") or item.get("reportingComponent", "")
    value: object = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "false" if path in {"spec.hostNetwork", "spec.unschedulable"} else ""
    return str(value)


def _field_test(path: str, unequal: bool, value: str) -> Test:
    return lambda item: (field_value(item, path) == value) is not unequal


def _label_test(part: str) -> Test:
    def labels(item: Object) -> Object:
        return item["metadata"].get("labels") or {}

    if found := _SET.match(part):
        key, operator, listed = found.groups()
        values = {one.strip() for one in listed.split(",")}
        return lambda item: (labels(item).get(key) in values) is (operator == "in")
    if found := _EQUALS.match(part):
        key, operator, value = found.groups()
        return lambda item: (labels(item).get(key) == value) is (operator != "!=")
    if found := _EXISTS.match(part):
        negated, key = found.groups()
        return lambda item: (key in labels(item)) is not bool(negated)
    raise bad_request(f"unable to parse requirement: found '{part}', expected: a key with an operator and values")
