"""The resources that the fake Kubernetes API server has, and the documents from which clients discover them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "0" * 40, "gitTreeState": "clean",
           "buildDate": "2026-04-22T00:00:00Z", "goVersion": "go1.26.1", "compiler": "gc",
           "platform": "linux/amd64"}  # fmt: skip

_TABLE = """
v1 Namespace namespaces - ns status
v1 Node nodes - no status
v1 PersistentVolume persistentvolumes - pv status
v1 Pod pods ns po status,log,exec,eviction
v1 PersistentVolumeClaim persistentvolumeclaims ns pvc status
v1 Secret secrets ns - -
v1 ConfigMap configmaps ns cm -
v1 Service services ns svc status
v1 ServiceAccount serviceaccounts ns sa token
v1 Event events ns ev -
v1 ResourceQuota resourcequotas ns quota status
v1 LimitRange limitranges ns limits -
networking.k8s.io/v1 NetworkPolicy networkpolicies ns netpol -
networking.k8s.io/v1 Ingress ingresses ns ing status
apps/v1 Deployment deployments ns deploy status
apps/v1 StatefulSet statefulsets ns sts status
apps/v1 DaemonSet daemonsets ns ds status
coordination.k8s.io/v1 Lease leases ns - -
policy/v1 PodDisruptionBudget poddisruptionbudgets ns pdb status
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers ns hpa status
batch/v1 Job jobs ns - status
rbac.authorization.k8s.io/v1 Role roles ns - -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings ns - -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles - - -
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings - - -
scheduling.k8s.io/v1 PriorityClass priorityclasses - pc -
node.k8s.io/v1 RuntimeClass runtimeclasses - - -
storage.k8s.io/v1 StorageClass storageclasses - sc -
storage.k8s.io/v1 VolumeAttachment volumeattachments - - status
authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews - - -
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions - crd status
"""

CUSTOM: dict[str, Object] = {
    one["metadata"]["name"]: one
    for one in yaml.safe_load_all((Path(__file__).parent / "custom_resources.yaml").read_text())
}
"""The CustomResourceDefinitions that a cluster can have, by name, with one version each."""

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SUBRESOURCES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # name: API version, kind and verbs, where they are not those of the resource
    "exec": ("v1", "PodExecOptions", ("create", "get")),
    "eviction": ("policy/v1", "Eviction", ("create",)),
    "token": ("authentication.k8s.io/v1", "TokenRequest", ("create",)),
    "log": ("v1", "Pod", ("get",)),
}


@dataclass(frozen=True)
class Resource:
    """A kind of object and where it is in the API. `qualified` is how error messages name it.

    is_custom: whether only a CustomResourceDefinition, whose name is `qualified`, makes the API server have it.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...]
    subresources: tuple[str, ...]
    is_custom: bool = False

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def verbs(self) -> tuple[str, ...]:
        return ("create",) if self.plural == "selfsubjectaccessreviews" else _VERBS


def _read_table() -> Iterator[Resource]:
    for line in _TABLE.strip().splitlines():
        version, kind, plural, namespaced, short, sub = line.split()
        subresources = () if sub == "-" else tuple(sub.split(","))
        yield Resource(version, kind, plural, namespaced == "ns", () if short == "-" else (short,), subresources)

    for spec in (one["spec"] for one in CUSTOM.values()):
        names, is_namespaced = spec["names"], spec["scope"] == "Namespaced"
        version, short = f"{spec['group']}/{spec['versions'][0]['name']}", tuple(names.get("shortNames", ()))
        yield Resource(version, names["kind"], names["plural"], is_namespaced, short, ("status",), is_custom=True)


BY_KIND: dict[str, Resource] = {one.kind: one for one in _read_table()}
"""Every resource by its kind, also custom ones that a cluster has not defined."""


def resource_of(item: Object) -> Resource:
    return BY_KIND[item["kind"]]


def find_document(path: str, resources: Collection[Resource]) -> Object | None:
    """Return the discovery document at a path for an API server with these resources, None if there is none."""
    versions = list(dict.fromkeys(one.api_version for one in resources))
    if path == "/version":
        return VERSION
    if path == "/api":
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
    groups = [_describe_group(version) for version in versions if version != "v1"]
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    for group in groups:
        if path == f"/apis/{group['name']}":
            return {"kind": "APIGroup", "apiVersion": "v1", **group}
    for version in versions:
        if path == ("/api/v1" if version == "v1" else f"/apis/{version}"):
            found = [entry for one in resources if one.api_version == version for entry in _entries(one)]
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}
    return None


def _describe_group(api_version: str) -> Object:
    version = {"groupVersion": api_version, "version": api_version.rpartition("/")[2]}
    return {"name": api_version.rpartition("/")[0], "versions": [version], "preferredVersion": version}


def _entries(one: Resource) -> Iterator[Object]:
    entry: Object = {"name": one.plural, "singularName": one.kind.lower(), "namespaced": one.namespaced}
    entry |= {"kind": one.kind, "verbs": list(one.verbs)}
    if one.short_names:
        entry["shortNames"] = list(one.short_names)
    yield entry
    for name in one.subresources:
        version, kind, verbs = _SUBRESOURCES.get(name, (one.api_version, one.kind, ("get", "patch", "update")))
        group, _, number = version.rpartition("/")
        entry = {"name": f"{one.plural}/{name}", "singularName": "", "namespaced": one.namespaced, "kind": kind}
        if version != one.api_version:
            entry |= {"group": group, "version": number}
        yield entry | {"verbs": list(verbs)}
