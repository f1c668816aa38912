"""Objects of an agent in a cluster as plain data: pod, claim, secret, and the policy of all pods.

Images are those of `roost/drivers/runtime/docker/plan.py`. The pod passes the level `restricted` of pod security
(https://kubernetes.io/docs/concepts/security/pod-security-standards/): no privilege, no init container, no token.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bwrap.agent_paths import validate_name
from roost.drivers.runtime.contract import BRIDGE_PORT, HOME, PROGRAM_ENV, WORKSPACE, ContainerLimits, ContainerSpec
from roost.drivers.runtime.docker.plan import PYTHON, WARDEN, ReadOnlyFiles, read_only_files

CONTAINER = "agent"
BRIDGE_VOLUME = "bridge"
BRIDGE_NAME = "roost-warden"
USER = 1000
NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"
AGENT, DELETE_ONLY = "roost/agent", "roost/delete-only"
CERTIFICATE = "certificate.pem"
PROBE = "probe-"
"""Begins the names of probes in place of agents' ids."""
_CERTIFICATES = "/run/bridge"
_CLOSED_FOLDER = "/root"
"""Folder of images that uid 1000 cannot enter."""
_GIT_ENV = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": WORKSPACE}
"""A kubelet makes the folders of a claim as root, and Git distrusts repositories of another user."""
_NO_ISTIO = {"sidecar.istio.io/inject": "false"}
"""A sidecar of a mesh would redirect the connections of servers, and have a network where the agent must have none."""
_MIB = 1 << 20


@dataclass(frozen=True)
class ClusterOptions:
    """What an operator decides about pods.

    name: of this deployment in its namespace, which begins the names of its objects. image: template of the image of an
    engine's version, with `{engine}` and `{version}`; without an engine they are `agent` and `version`, Roost's own.
    user: uid of pods, None if the namespace gives one (OpenShift).
    server_labels: of the pods that may open connections to agents; server_namespace: where they are, if not in that of
    the agents. server_networks: from which servers outside of the cluster come. accepts_open_network: whether agents
    start where the cluster does not enforce network policies. uses_exec: whether wardens are reached by `pods/exec` in
    place of their pods' addresses. claim_access_mode: `ReadWriteOncePod` where the storage has it. host_users: False
    for a user namespace for each pod, where nodes have them. pull_policy: of images.
    """

    name: str = "roost"
    image: str = "roost-{engine}:{version}"
    version: str = "latest"
    storage_class: str | None = None
    storage_bytes: int = 10 * 1024**3
    runtime_class: str | None = None
    pull_secrets: Sequence[str] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: Sequence[Mapping[str, Any]] = ()
    priority_class: str | None = None
    requested_memory_bytes: int = 256 * _MIB
    requested_cpus: float = 0.1
    user: int | None = USER
    server_labels: Mapping[str, str] = field(default_factory=lambda: {NAME: "roost"})
    server_namespace: str | None = None
    server_networks: Sequence[str] = ()
    accepts_open_network: bool = False
    uses_exec: bool = False
    claim_access_mode: str = "ReadWriteOnce"
    host_users: bool | None = None
    pull_policy: str = "IfNotPresent"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all objects of this deployment's agents."""
        return {NAME: "roost-agent", INSTANCE: self.name}

    @property
    def selector(self) -> str:
        """Selector of these labels in a query."""
        return ",".join(f"{name}={value}" for name, value in self.labels.items())

    def object_name(self, agent_id: str) -> str:
        """Return the name of an agent's pod, claim and secret. Raises RuntimeFailed."""
        return f"{self.name}-{validate_name(agent_id)}"


def is_probe(agent_id: str) -> bool:
    """Return whether a pod is that of a probe, which keeps no files."""
    return agent_id.startswith(PROBE)


def pod_object(options: ClusterOptions, spec: ContainerSpec, secret: str) -> dict[str, Any]:
    """Return the pod; `secret` has the certificate of its bridge, unless that goes through `pods/exec`."""
    name = options.object_name(spec.agent_id)
    body = _pod_spec(options, spec, name, secret)
    metadata = {
        "name": name,
        "labels": {**options.labels, AGENT: spec.agent_id, DELETE_ONLY: str(spec.delete_only).lower(), **_NO_ISTIO},
        "annotations": {**_NO_ISTIO, "linkerd.io/inject": "disabled"},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def claim_object(options: ClusterOptions, agent_id: str) -> dict[str, Any]:
    """Return the claim for workspace and home."""
    body: dict[str, Any] = {
        "accessModes": [options.claim_access_mode],
        "resources": {"requests": {"storage": str(options.storage_bytes)}},
    }
    if options.storage_class is not None:
        body["storageClassName"] = options.storage_class
    metadata = {"name": options.object_name(agent_id), "labels": {**options.labels, AGENT: agent_id}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body}


def secret_object(
    options: ClusterOptions, agent_id: str, certificate: Sensitive[str], claim_uid: str = "", pod_uid: str = ""
) -> dict[str, Any]:
    """Return the secret with the certificate of a bridge; the cluster deletes it after the claim, or a probe's pod."""
    kind = "Pod" if pod_uid else "PersistentVolumeClaim"
    owner = {"apiVersion": "v1", "kind": kind, "name": options.object_name(agent_id), "uid": pod_uid or claim_uid}
    name = secret_name(options, agent_id, claim_uid)
    metadata = {"name": name, "labels": {**options.labels, AGENT: agent_id}, "ownerReferences": [owner]}
    data = {CERTIFICATE: base64.b64encode(certificate.reveal().encode()).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "immutable": True,
        "data": data,
    }


def secret_name(options: ClusterOptions, agent_id: str, claim_uid: str) -> str:
    return f"{options.object_name(agent_id)}-{hashlib.sha256(claim_uid.encode()).hexdigest()[:8]}"


def read_only_map(options: ClusterOptions, found: ReadOnlyFiles) -> dict[str, Any]:
    """Return the ConfigMap of files that pods share; its keys are numbers, because paths are none."""
    contents = [found.content[path] if path in found.content else found.caches[path] for path in _paths(found)]
    data = {str(number): base64.b64encode(content).decode() for number, content in enumerate(contents)}
    metadata = {"name": map_name(options, found), "labels": options.labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "binaryData": data}


def map_name(options: ClusterOptions, found: ReadOnlyFiles) -> str:
    return f"{options.name}-{found.name.removeprefix('roost-')}"


def network_policy(options: ClusterOptions) -> dict[str, Any]:
    """Return the policy of all pods: nothing leads out, and only servers lead in, to the bridge."""
    source: dict[str, Any] = {"podSelector": {"matchLabels": dict(options.server_labels)}}
    if options.server_namespace is not None:
        names = {"kubernetes.io/metadata.name": options.server_namespace}
        source["namespaceSelector"] = {"matchLabels": names}
    networks = [{"ipBlock": {"cidr": network}} for network in options.server_networks]
    ingress = [{"from": [source, *networks], "ports": [{"protocol": "TCP", "port": BRIDGE_PORT}]}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"{options.name}-agents", "labels": options.labels},
        "spec": {
            "podSelector": {"matchLabels": options.labels},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [] if options.uses_exec else ingress,
            "egress": [],
        },
    }


def image_of(options: ClusterOptions, spec: ContainerSpec) -> str:
    engine, version = ("agent", options.version) if spec.engine is None else (spec.engine.id, spec.engine.version)
    return options.image.format(engine=engine, version=version)


def _pod_spec(options: ClusterOptions, spec: ContainerSpec, name: str, secret: str) -> dict[str, Any]:
    mounts: list[dict[str, Any]] = [
        {"name": "files", "mountPath": WORKSPACE, "subPath": "workspace"},
        {"name": "files", "mountPath": HOME, "subPath": "home"},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the container's own
    ]
    files: dict[str, Any] = (
        {"emptyDir": {}} if is_probe(spec.agent_id) else {"persistentVolumeClaim": {"claimName": name}}
    )
    volumes: list[dict[str, Any]] = [
        {"name": "files", **files},
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": str(spec.limits.tmp_bytes)}},
    ]
    for number, found in enumerate(read_only_files(spec)):
        volume = f"read-only-{number}"
        items = [{"key": str(key), "path": path} for key, path in enumerate(_paths(found))]
        volumes.append({"name": volume, "configMap": {"name": map_name(options, found), "items": items}})
        mounts.append({"name": volume, "mountPath": found.folder, "readOnly": True})
    if secret:
        volumes.append({"name": BRIDGE_VOLUME, "secret": {"secretName": secret}})
        mounts.append({"name": BRIDGE_VOLUME, "mountPath": _CERTIFICATES, "readOnly": True})
    user = {} if options.user is None else dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), options.user)
    body = {
        "containers": [_container(options, spec, mounts)],
        "volumes": volumes,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": "agent",
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["127.0.0.1"],
            "options": [{"name": "timeout", "value": "1"}, {"name": "attempts", "value": "2"}],
        },
        "securityContext": {
            "runAsNonRoot": True,
            **user,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        },
        "imagePullSecrets": [{"name": name} for name in options.pull_secrets],
        "nodeSelector": dict(options.node_selector),
        "tolerations": [dict(toleration) for toleration in options.tolerations],
        "hostUsers": options.host_users,
        "runtimeClassName": options.runtime_class,
        "priorityClassName": options.priority_class,
    }
    return {name: value for name, value in body.items() if value not in (None, [], {})}


def _container(options: ClusterOptions, spec: ContainerSpec, mounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    limits = spec.limits
    return {
        "name": CONTAINER,
        "image": image_of(options, spec),
        "imagePullPolicy": options.pull_policy,
        "command": [*PYTHON, f"{WARDEN}/warden.py"],
        "args": [json.dumps(_warden_config(options, spec))],
        "workingDir": WORKSPACE,
        # A file of the node's disk without a limit of size, which agents must not reach.
        "terminationMessagePath": f"{_CLOSED_FOLDER}/termination-log",
        "ports": [] if options.uses_exec else [{"name": "bridge", "containerPort": BRIDGE_PORT}],
        "resources": {
            "limits": {
                "memory": str(limits.memory_bytes),
                "cpu": f"{round(limits.cpus * 1000)}m",
                "ephemeral-storage": str(64 * _MIB),  # logs of the container, which are few
            },
            "requests": {
                "memory": str(min(options.requested_memory_bytes, limits.memory_bytes)),
                "cpu": f"{round(min(options.requested_cpus, limits.cpus) * 1000)}m",
                "ephemeral-storage": str(16 * _MIB),
            },
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": list(mounts),
    }


def _warden_config(options: ClusterOptions, spec: ContainerSpec) -> Mapping[str, Any]:
    address = {"port": BRIDGE_PORT, "certificate": f"{_CERTIFICATES}/{CERTIFICATE}"}
    return {
        "agent": spec.agent_id,
        "bridge": {"name": BRIDGE_NAME, "uid": options.user} if options.uses_exec else address,
        "workspace": WORKSPACE,
        "home": HOME,
        "relays": {str(port): name for port, name in spec.relays.items()},
        "egress": spec.egress,
        "env": {**PROGRAM_ENV, **_GIT_ENV, **spec.env},
        "delete_only": spec.delete_only,
        "limits": _process_limits(options, spec.limits),
    }


def _process_limits(options: ClusterOptions, limits: ContainerLimits) -> Mapping[str, int]:
    """Return the limits of each process; no program may raise its priority."""
    # The kernel counts the processes of a user in a user namespace, and pods without one of their own share theirs.
    processes = {"nproc": limits.pids} if options.host_users is False else {}
    return {"core": 0, "fsize": limits.file_bytes, "nofile": limits.open_files, "nice": 0, "rtprio": 0, **processes}


def _paths(found: ReadOnlyFiles) -> list[str]:
    return sorted({*found.content, *found.caches})
