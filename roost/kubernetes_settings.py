"""Settings of the Kubernetes runtime, each of them with `kubernetes_` before its name."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from roost.setting_types import (
    Flag,
    Items,
    Labels,
    Networks,
    Objects,
    OptionalFile,
    OptionalUrl,
    Size,
    Uid,
    declare_setting,
)

_NAME = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"


class KubernetesSettings(BaseModel):
    """Where the pods of agents are, and what they are made of (`deploy/chart` sets most of it)."""

    kubernetes_api: OptionalUrl = declare_setting(
        None, "The API server for the service account of a pod; by default the one in the environment of the pod."
    )
    kubernetes_config: OptionalFile = declare_setting(
        None, "A kubeconfig file; by default the service account of the pod in which the server runs."
    )
    kubernetes_namespace: str = declare_setting(
        "", "The namespace of the agents; by default that of the service account, or of the kubeconfig."
    )
    kubernetes_name: Annotated[str, Field(pattern=_NAME)] = declare_setting(
        "roost", "The name of this deployment in its namespace, with which the names of its objects begin."
    )
    kubernetes_image_repository: str = declare_setting(
        "", "The prefix of the images of agents, `registry.example.com/team`; `make images` makes and pushes them."
    )
    kubernetes_image_pull_secrets: Items = declare_setting(
        "", "Names of Secrets with credentials of that registry, comma-separated."
    )
    kubernetes_storage_class: str | None = declare_setting(
        None, "The StorageClass of the agents' volumes; by default the cluster's."
    )
    kubernetes_storage_size: Size = declare_setting("10G", "The size of each volume, in bytes or like `10G`.")
    kubernetes_claim_access_mode: Literal["ReadWriteOnce", "ReadWriteOncePod"] = declare_setting(
        "ReadWriteOnce", "The access mode of each volume: `ReadWriteOncePod` where its storage has that."
    )
    kubernetes_pull_policy: Literal["IfNotPresent", "Always", "Never"] = declare_setting(
        "IfNotPresent", "When nodes pull the images of agents: `IfNotPresent`, `Always` or `Never`."
    )
    kubernetes_runtime_class: str | None = declare_setting(
        None, "The RuntimeClass of the agents' pods, of gVisor or Kata for example."
    )
    kubernetes_node_selector: Labels = declare_setting(
        "", 'Labels of the nodes for agents, as JSON: `{"pool": "agents"}`.'
    )
    kubernetes_tolerations: Objects = declare_setting(
        "", 'Taints that the agents\' pods tolerate, as JSON: `[{"key": "agents", "operator": "Exists"}]`.'
    )
    kubernetes_priority_class: str | None = declare_setting(None, "The PriorityClass of the agents' pods.")
    kubernetes_user: Uid = declare_setting(
        "1000", "The uid of the agents' pods; `none` where the namespace gives one, as on OpenShift."
    )
    kubernetes_user_namespaces: Flag = declare_setting(
        "false", "`true` gives each pod a user namespace of its own, where the nodes have them."
    )
    kubernetes_server_labels: Labels = declare_setting(
        '{"app.kubernetes.io/name": "roost"}', "Labels of the pods that may open connections to agents, as JSON."
    )
    kubernetes_server_namespace: str | None = declare_setting(
        None, "The namespace of these pods, if it is not that of the agents."
    )
    kubernetes_server_networks: Networks = declare_setting(
        "", "Networks of servers outside of the cluster that may open connections to agents, comma-separated."
    )
    kubernetes_exec: Flag = declare_setting(
        "false", "`true` reaches agents by `pods/exec`, where the server cannot reach addresses of pods."
    )
    kubernetes_accept_open_network: Flag = declare_setting(
        "false", "`true` starts agents also where the cluster does not enforce network policies."
    )
