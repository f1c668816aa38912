"""Defaults that the API server fills in, and what its built-in admission plugins add to pods."""

from collections.abc import Callable
from typing import Any

from tests.support.kubernetes.quantities import pod_requests
from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.store import Store

_EMPTY_STATUS: dict[str, Object] = {
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "DaemonSet": {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
    "PodDisruptionBudget": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    "HorizontalPodAutoscaler": {"desiredReplicas": 0, "currentMetrics": None},
    "Ingress": {"loadBalancer": {}},
}
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def fill_defaults(item: Object) -> Object:
    """Return an object with the defaults of its kind; parts that were filled in are copies."""
    fill = _BY_KIND.get(item["kind"])
    return (
        fill({**item, "spec": dict(item["spec"])} if isinstance(item.get("spec"), dict) else dict(item))
        if fill
        else item
    )


def _fill_pod(item: Object) -> Object:
    spec = {"enableServiceLinks": True, **_fill_pod_spec(item.get("spec", {}))}
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    return {**item, "spec": spec, "status": item.get("status", {})}


def _fill_pod_spec(spec: Object) -> Object:
    plain = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst"}
    found = {**plain, "schedulerName": "default-scheduler", "securityContext": {}, **spec}
    if name := spec.get("serviceAccountName", spec.get("serviceAccount")):
        found |= {"serviceAccountName": name, "serviceAccount": name}
    for key in ("containers", "initContainers"):
        if key in spec:
            found[key] = [_fill_container(one) for one in spec[key]]
    if "volumes" in spec:
        found["volumes"] = [_fill_volume(one) for one in spec["volumes"]]
    return found


def _fill_container(one: Object) -> Object:
    image = one.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    pull = "Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent"
    found = {"resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
             "imagePullPolicy": pull, **one}  # fmt: skip
    if limits := found["resources"].get("limits"):
        found["resources"] = {**found["resources"], "requests": {**limits, **found["resources"].get("requests", {})}}
    if "ports" in one:
        found["ports"] = [{"protocol": "TCP", **port} for port in one["ports"]]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in one:
            plain = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
            found[probe] = plain | one[probe]
            if "httpGet" in one[probe]:
                found[probe]["httpGet"] = {"path": "/", "scheme": "HTTP", **one[probe]["httpGet"]}
    if "env" in one:
        found["env"] = [_fill_variable(variable) for variable in one["env"]]
    return found


def _fill_variable(one: Object) -> Object:
    if reference := one.get("valueFrom", {}).get("fieldRef"):
        return {**one, "valueFrom": {"fieldRef": {"apiVersion": "v1", **reference}}}
    return one


def _fill_volume(one: Object) -> Object:
    modes = {key: {"defaultMode": 420, **one[key]} for key in ("secret", "configMap", "projected") if key in one}
    kinds = set(one) - {"name"}
    return {**one, **modes} if kinds else {**one, "emptyDir": {}}


def _fill_template(item: Object) -> Object:
    spec = item["spec"]
    template = spec.get("template", {})
    spec["template"] = {**template, "spec": _fill_pod_spec(template.get("spec", {}))}
    if item["kind"] == "Deployment":
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
        plain = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": rolling}
        item["spec"] = plain | spec
    elif item["kind"] == "StatefulSet":
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        plain = {"replicas": 1, "revisionHistoryLimit": 10, "serviceName": "", "podManagementPolicy": "OrderedReady"}
        plain |= {"updateStrategy": rolling, "persistentVolumeClaimRetentionPolicy": retention}
        item["spec"] = plain | spec
    elif item["kind"] == "DaemonSet":
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
        item["spec"] = {"updateStrategy": rolling, "revisionHistoryLimit": 10, **spec}
    return {**item, "status": item.get("status") or _EMPTY_STATUS.get(item["kind"], {})}


def _fill_claim(item: Object) -> Object:
    item["spec"] = {"volumeMode": "Filesystem", **item["spec"]}
    return {**item, "status": item.get("status") or {"phase": "Pending"}}


def _fill_policy(item: Object) -> Object:
    types = ["Ingress", "Egress"] if "egress" in item["spec"] else ["Ingress"]
    peers = {
        key: [_fill_ports(rule) for rule in item["spec"][key]] for key in ("ingress", "egress") if key in item["spec"]
    }
    item["spec"] = {"podSelector": {}, "policyTypes": types, **item["spec"], **peers}
    return item


def _fill_ports(rule: Object) -> Object:
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]} if "ports" in rule else rule


def _fill_namespace(item: Object) -> Object:
    labels = {**item["metadata"].get("labels", {}), "kubernetes.io/metadata.name": item["metadata"]["name"]}
    found = {**item, "metadata": {**item["metadata"], "labels": labels}}
    return {**found, "spec": {"finalizers": ["kubernetes"]}, "status": item.get("status") or {"phase": "Active"}}


def _fill_secret(item: Object) -> Object:
    return {"type": "Opaque", **item}


def _fill_status(item: Object) -> Object:
    return {**item, "status": item.get("status") or _EMPTY_STATUS.get(item["kind"], {})}


def _fill_autoscaler(item: Object) -> Object:
    target = {"type": "Utilization", "averageUtilization": 80}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    item["spec"] = {"minReplicas": 1, "metrics": metrics, **item["spec"]}
    return _fill_status(item)


def _fill_binding(item: Object) -> Object:
    rbac = "rbac.authorization.k8s.io"
    subjects = [
        one if one["kind"] == "ServiceAccount" else {"apiGroup": rbac, **one} for one in item.get("subjects", ())
    ]
    return {**item, "roleRef": {"apiGroup": rbac, **item["roleRef"]}, **({"subjects": subjects} if subjects else {})}


def _fill_limits(item: Object) -> Object:
    limits = [{"defaultRequest": one["default"], **one} if "default" in one else one for one in item["spec"]["limits"]]
    return {**item, "spec": {"limits": limits}}


def _fill_service(item: Object) -> Object:
    ports = [{"protocol": "TCP", "targetPort": one["port"], **one} for one in item["spec"].get("ports", ())]
    plain: Object = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    plain |= {
        "clusterIP": "10.96.0.10",
        "clusterIPs": [item["spec"].get("clusterIP", "10.96.0.10")],
        "ipFamilies": ["IPv4"],
    }
    item["spec"] = {**plain, "ipFamilyPolicy": "SingleStack", **item["spec"], **({"ports": ports} if ports else {})}
    return {**item, "status": item.get("status") or {"loadBalancer": {}}}


def _fill_storage_class(item: Object) -> Object:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **item}


def _fill_node(item: Object) -> Object:
    return {**item, "spec": item.get("spec") or {}, "status": item.get("status") or {}}


def _fill_job(item: Object) -> Object:
    spec = item["spec"]
    template = {**spec["template"], "spec": _fill_pod_spec(spec["template"].get("spec", {}))}
    plain: Object = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed"}
    item["spec"] = {
        **plain,
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        **spec,
        "template": template,
    }
    return {**item, "status": item.get("status", {})}


_BY_KIND: dict[str, Callable[[Any], Object]] = {
    "Pod": _fill_pod,
    "Deployment": _fill_template,
    "StatefulSet": _fill_template,
    "DaemonSet": _fill_template,
    "Job": _fill_job,
    "PersistentVolumeClaim": _fill_claim,
    "NetworkPolicy": _fill_policy,
    "Namespace": _fill_namespace,
    "Secret": _fill_secret,
    "Service": _fill_service,
    "StorageClass": _fill_storage_class,
    "Node": _fill_node,
    "PodDisruptionBudget": _fill_status,
    "Ingress": _fill_status,
    "ResourceQuota": _fill_status,
    "HorizontalPodAutoscaler": _fill_autoscaler,
    "RoleBinding": _fill_binding,
    "ClusterRoleBinding": _fill_binding,
    "LimitRange": _fill_limits,
}


def admit_new_pod(store: Store, item: Object, suffix: str) -> Object:
    """Return a new pod with what the service account, priority and toleration plugins add to it."""
    spec = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", **item["spec"]}
    tolerated = {one.get("key") for one in spec.get("tolerations", ())}
    added = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
             for key in _LOST if not tolerated & {key, None}]  # fmt: skip
    spec["tolerations"] = [*spec.get("tolerations", ()), *added]
    name = spec.get("serviceAccountName") or "default"
    spec |= {"serviceAccountName": name, "serviceAccount": name}
    account = store.get("ServiceAccount", item["metadata"]["namespace"], name)
    automount = spec.get("automountServiceAccountToken", (account or {}).get("automountServiceAccountToken", True))
    if automount:
        volume = f"kube-api-access-{suffix}"
        sources: list[Object] = [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace",
                                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]  # fmt: skip
        spec["volumes"] = [
            *spec.get("volumes", ()),
            {"name": volume, "projected": {"sources": sources, "defaultMode": 420}},
        ]
        mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
        for key in ("containers", "initContainers"):
            if key in spec:
                spec[key] = [{**one, "volumeMounts": [*one.get("volumeMounts", ()), mount]} for one in spec[key]]
    status = {"phase": "Pending", "qosClass": _quality_of_service(spec)}
    return {**item, "spec": spec, "status": status}


def _quality_of_service(spec: Object) -> str:
    resources = [one.get("resources", {}) for one in spec["containers"]]
    if not any(one.get("limits") or one.get("requests") for one in resources):
        return "BestEffort"
    same = all(
        {"cpu", "memory"} <= set(one.get("limits", ())) and one.get("requests", one["limits"]) == one["limits"]
        for one in resources
    )
    return "Guaranteed" if same and pod_requests(spec) else "Burstable"
