"""Validation of objects: names, labels, the fields of pods, and what an update may not change."""

import re
from collections.abc import Iterator
from typing import Any

from tests.support.kubernetes.errors import FieldError
from tests.support.kubernetes.quantities import parse_quantity
from tests.support.kubernetes.resources import Object, Resource
from tests.support.kubernetes.schemas import definition_of, missing_fields, schema_errors

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_KEY = re.compile(rf"({_SUBDOMAIN}/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_WORDS = "must consist of lower case alphanumeric characters"
_ENDS = "and must start and end with an alphanumeric character"
LABEL_MESSAGE = f"a lowercase RFC 1123 label {_WORDS} or '-', {_ENDS} (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"  # noqa: E501
SUBDOMAIN_MESSAGE = f"a lowercase RFC 1123 subdomain {_WORDS}, '-' or '.', {_ENDS} (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"  # noqa: E501
_VALUE_MESSAGE = f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"  # noqa: E501
_KEY_MESSAGE = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"  # noqa: E501
_CONFIG_KEY_MESSAGE = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"  # noqa: E501
_POD_UPDATE = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"  # noqa: E501
_CLAIM_UPDATE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_VALUES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "File"),
}
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def validate_object(resource: Resource, item: Object) -> list[FieldError]:
    """Return what the API server would refuse in a new object."""
    errors = [*_validate_metadata(resource, item["metadata"])]
    found, definition = {error.field for error in errors}, definition_of(item["apiVersion"], item["kind"])
    if resource.is_custom:
        return [*errors, *(one for one in schema_errors(definition, item) if one.field not in found)]
    missing = missing_fields(definition, item)
    for path in missing:
        if path not in found and not path.startswith("metadata.") and path != "roleRef.apiGroup":
            detail = "verbs must contain at least one value" if path.endswith("verbs") else ""
            errors.append(FieldError(path, "Required value", detail))
    if resource.kind == "Pod":
        errors += _validate_pod(item.get("spec", {}))
    elif resource.kind in {"Secret", "ConfigMap"}:
        keys = [key for key in item.get("data", {}) if not re.fullmatch(r"[-._a-zA-Z0-9]+", key)]
        errors += [FieldError(f"data[{key}]", "Invalid value", _CONFIG_KEY_MESSAGE, key) for key in keys]
    elif resource.kind == "Service" and item.get("spec", {}).get("type") != "ExternalName":
        if not item.get("spec", {}).get("ports") and item.get("spec", {}).get("clusterIP") != "None":
            errors.append(FieldError("spec.ports", "Required value"))
    elif resource.kind == "Event" and item["involvedObject"].get("namespace", "") != item["metadata"]["namespace"]:
        value = item["involvedObject"].get("namespace", "")
        if value or item["metadata"]["namespace"] != "default":
            errors.append(
                FieldError("involvedObject.namespace", "Invalid value", "does not match event.namespace", value)
            )
    elif resource.kind == "PersistentVolumeClaim":
        errors += _validate_claim(item.get("spec", {}))
    elif resource.kind == "Lease" and item.get("spec", {}).get("leaseDurationSeconds", 1) <= 0:
        value = item["spec"]["leaseDurationSeconds"]
        errors.append(FieldError("spec.leaseDurationSeconds", "Invalid value", "must be greater than 0", value))
    return errors


def _validate_metadata(resource: Resource, metadata: Object) -> Iterator[FieldError]:
    name, generated = metadata.get("name", ""), metadata.get("generateName", "")
    if generated and not re.fullmatch(_SUBDOMAIN, f"{generated}a"):
        yield FieldError("metadata.generateName", "Invalid value", SUBDOMAIN_MESSAGE, generated)
    for one in metadata.get("ownerReferences", ()):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not one.get(key):
                detail = "version must not be empty" if key == "apiVersion" else "must not be empty"
                yield FieldError(f"metadata.ownerReferences.{key}", "Invalid value", detail, "")
    if not name:
        yield FieldError("metadata.name", "Required value", "name or generateName is required")
    elif resource.group == "rbac.authorization.k8s.io":
        if "/" in name or "%" in name or name in {".", ".."}:
            yield FieldError("metadata.name", "Invalid value", "may not contain '/'", name)
    elif resource.kind in {"Namespace", "Service"}:
        yield from _check_name(name, _LABEL, 63, LABEL_MESSAGE)
    else:
        yield from _check_name(name, _SUBDOMAIN, 253, SUBDOMAIN_MESSAGE)
    for key, value in (metadata.get("labels") or {}).items():
        if not _KEY.fullmatch(key):
            prefix, slash, _ = key.rpartition("/")
            wrong = slash and not re.fullmatch(_SUBDOMAIN, prefix)
            message = f"prefix part {SUBDOMAIN_MESSAGE}" if wrong else _KEY_MESSAGE
            yield FieldError("metadata.labels", "Invalid value", message, key)
        if len(value) > 63:
            yield FieldError("metadata.labels", "Invalid value", "must be no more than 63 bytes", value)
        if not re.fullmatch(_VALUE, value):
            yield FieldError("metadata.labels", "Invalid value", _VALUE_MESSAGE, value)
    for key in metadata.get("annotations") or {}:
        if not _KEY.fullmatch(key.lower()):
            yield FieldError("metadata.annotations", "Invalid value", _KEY_MESSAGE, key)
    for name in metadata.get("finalizers") or ():
        if "/" not in name and name not in {"orphan", "foregroundDeletion"}:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield FieldError("metadata.finalizers[0]", "Invalid value", detail, name)


def _check_name(name: str, pattern: str, limit: int, message: str) -> Iterator[FieldError]:
    if len(name) > limit:
        yield FieldError("metadata.name", "Invalid value", f"must be no more than {limit} characters", name)
    if not re.fullmatch(pattern, name):
        detail = "must not contain dots" if pattern == _LABEL and re.fullmatch(_SUBDOMAIN, name) else message
        yield FieldError("metadata.name", "Invalid value", detail, name)


def _validate_pod(spec: Object) -> Iterator[FieldError]:
    if not spec:
        yield FieldError("spec.containers", "Required value")
    volumes = [one.get("name", "") for one in spec.get("volumes", ())]
    for index, name in enumerate(volumes):
        kinds = [key for key in spec["volumes"][index] if key != "name"]
        if len(kinds) > 1:
            yield FieldError(
                f"spec.volumes[{index}].{kinds[-1]}", "Forbidden", "may not specify more than 1 volume type"
            )
        if not re.fullmatch(_LABEL, name):
            yield FieldError(f"spec.volumes[{index}].name", "Invalid value", LABEL_MESSAGE, name)
        if name in volumes[:index]:
            yield FieldError(f"spec.volumes[{index}].name", "Duplicate value", value=name)
    yield from _check_values(spec, "spec")
    if spec.get("dnsPolicy") == "None" and "dnsConfig" not in spec:
        yield FieldError("spec.dnsConfig", "Required value", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif spec.get("dnsPolicy") == "None" and not spec["dnsConfig"].get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield FieldError("spec.dnsConfig.nameservers", "Required value", detail)
    if not 1 <= spec.get("activeDeadlineSeconds", 1) <= 2147483647:
        value, detail = spec["activeDeadlineSeconds"], "must be between 1 and 2147483647, inclusive"
        yield FieldError("spec.activeDeadlineSeconds", "Invalid value", detail, value)
    if not re.fullmatch(_LABEL, spec.get("hostname", "a")):
        yield FieldError("spec.hostname", "Invalid value", LABEL_MESSAGE, spec["hostname"])
    for index, one in enumerate(spec.get("tolerations", ())):
        if one.get("operator", "Equal") not in {"Equal", "Exists"}:
            place, detail = f"spec.tolerations[{index}].operator", 'supported values: "Equal", "Exists"'
            yield FieldError(place, "Unsupported value", detail, one["operator"])
    seen: set[str] = set()
    for key in ("initContainers", "containers"):
        for index, one in enumerate(spec.get(key, ())):
            place = f"spec.{key}[{index}]"
            name = one.get("name", "")
            if name and not re.fullmatch(_LABEL, name):
                yield FieldError(f"{place}.name", "Invalid value", LABEL_MESSAGE, name)
            if name in seen:
                yield FieldError(f"{place}.name", "Duplicate value", value=name)
            seen.add(name)
            if not one.get("image"):
                yield FieldError(f"{place}.image", "Required value")
            yield from _check_values(one, place)
            yield from _check_container(one, place, volumes)


def _check_container(one: Object, place: str, volumes: list[str]) -> Iterator[FieldError]:
    paths: list[str] = []
    for index, mount in enumerate(one.get("volumeMounts", ())):
        if mount.get("name") not in volumes:
            yield FieldError(f"{place}.volumeMounts[{index}].name", "Not found", value=mount.get("name", ""))
        if mount.get("mountPath") in paths:
            yield FieldError(
                f"{place}.volumeMounts[{index}].mountPath", "Invalid value", "must be unique", mount["mountPath"]
            )
        paths.append(mount.get("mountPath", ""))
    for index, port in enumerate(one.get("ports", ())):
        if port.get("containerPort") == 0:
            yield FieldError(f"{place}.ports[{index}].containerPort", "Required value")
        elif not 1 <= port.get("containerPort", 1) <= 65535:
            detail = "must be between 1 and 65535, inclusive"
            yield FieldError(f"{place}.ports[{index}].containerPort", "Invalid value", detail, port["containerPort"])
    resources = one.get("resources", {})
    for name, limit in resources.get("limits", {}).items():
        wanted = resources.get("requests", {}).get(name)
        if wanted is not None and parse_quantity(wanted) > parse_quantity(limit):
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield FieldError(f"{place}.resources.requests", "Invalid value", detail, wanted)


def _check_values(owner: Object, place: str) -> Iterator[FieldError]:
    for key, allowed in _VALUES.items():
        if key in owner and owner[key] not in allowed:
            detail = "supported values: " + ", ".join(f'"{one}"' for one in allowed)
            yield FieldError(f"{place}.{key}", "Unsupported value", detail, owner[key])


def _validate_claim(spec: Object) -> Iterator[FieldError]:
    if not spec.get("accessModes"):
        yield FieldError("spec.accessModes", "Required value", "at least 1 access mode is required")
    for mode in spec.get("accessModes", ()):
        if mode not in _ACCESS_MODES:
            detail = "supported values: " + ", ".join(f'"{one}"' for one in _ACCESS_MODES)
            yield FieldError("spec.accessModes", "Unsupported value", detail, mode)
    if "storage" not in spec.get("resources", {}).get("requests", {}):
        yield FieldError("spec.resources[storage]", "Required value")


def validate_update(resource: Resource, before: Object, now: Object) -> list[FieldError]:
    """Return what the API server would refuse in a change of an object."""
    errors = validate_object(resource, now)
    added = set(now["metadata"].get("finalizers") or ()) - set(before["metadata"].get("finalizers") or ())
    if added and before["metadata"].get("deletionTimestamp"):
        listed = ", ".join(f'"{one}"' for one in sorted(added))
        detail = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        errors.append(FieldError("metadata.finalizers", "Forbidden", detail))
    if resource.kind == "Pod" and _frozen_pod(before["spec"]) != _frozen_pod(now["spec"]):
        errors.append(FieldError("spec", "Forbidden", _POD_UPDATE))
    if resource.kind == "PersistentVolumeClaim" and _frozen_claim(before) != _frozen_claim(now):
        errors.append(FieldError("spec", "Forbidden", _CLAIM_UPDATE))
    if resource.kind in {"Secret", "ConfigMap"} and before.get("immutable"):
        for key in ("data", "binaryData"):
            if before.get(key) != now.get(key):
                errors.append(FieldError(key, "Forbidden", "field is immutable when `immutable` is set"))
    if resource.kind == "Secret" and before.get("type") != now.get("type"):
        errors.append(FieldError("type", "Invalid value", "field is immutable", now.get("type")))
    if resource.kind in {"Role", "RoleBinding", "ClusterRoleBinding"} and before.get("roleRef") != now.get("roleRef"):
        errors.append(FieldError("roleRef", "Invalid value", "cannot change roleRef", now.get("roleRef")))
    if resource.group == "apps" and before["spec"].get("selector") != now["spec"].get("selector"):
        errors.append(FieldError("spec.selector", "Invalid value", "field is immutable", now["spec"].get("selector")))
    return errors


def _frozen_pod(spec: Object) -> Object:
    changeable = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}
    found: dict[str, Any] = {key: value for key, value in spec.items() if key not in changeable}
    for key in ("containers", "initContainers"):
        if key in found:
            found[key] = [{part: value for part, value in one.items() if part != "image"} for one in found[key]]
    if (spec.get("terminationGracePeriodSeconds") or 0) >= 0:
        found["grace"] = spec.get("terminationGracePeriodSeconds")
    return found


def _frozen_claim(item: Object) -> Object:
    bound = item.get("status", {}).get("phase") == "Bound" or "volumeName" in item["spec"]
    changeable = {"volumeName", *(("resources",) if bound else ())}
    return {key: value for key, value in item["spec"].items() if key not in changeable}
