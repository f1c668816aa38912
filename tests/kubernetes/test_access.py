"""Who may do what, and what admission refuses."""

import asyncio
from typing import Any

import pytest

from tests.kubernetes.client import RBAC, KubernetesClient, config_map, pod
from tests.support.kubernetes.admission import Denied, Webhook
from tests.support.kubernetes.cluster import FakeCluster

MERGE = "application/merge-patch+json"
Rule = dict[str, list[str]]


async def allow(api: KubernetesClient, *rules: Rule) -> KubernetesClient:
    """Return a client of a service account that may do this in the namespace."""
    await api.create(api.path("serviceaccounts"), {"metadata": {"name": "server"}})
    await api.create(api.path("roles", group=RBAC), {"metadata": {"name": "server"}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": "server", "namespace": api.namespace}
    binding = {
        "metadata": {"name": "server"}, "subjects": [subject],
        "roleRef": {"kind": "Role", "name": "server", "apiGroup": "rbac.authorization.k8s.io"},
    }  # fmt: skip
    await api.create(api.path("rolebindings", group=RBAC), binding)
    made = await api.create(f"{api.path('serviceaccounts', 'server')}/token", {"spec": {}})
    return api.with_token(made["status"]["token"])


async def test_missing_and_wrong_tokens_are_told_apart(api: KubernetesClient) -> None:
    wrong = await api.with_token("wrong").request("GET", api.path("pods"))
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized"}
    assert wrong.json() == {**status, "reason": "Unauthorized", "code": 401}
    message = (
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace '
        f'"{api.namespace}"'
    )
    nobody = api.with_token("")
    assert await nobody.refused("GET", api.path("pods")) == (403, "Forbidden", message)
    assert (await nobody.request("GET", "/readyz")).text == "ok"


async def test_role_allows_its_verbs_alone(api: KubernetesClient) -> None:
    user = await allow(api, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]})
    path = api.path("configmaps")
    name = f"system:serviceaccount:{api.namespace}:server"
    assert (await user.request("POST", path, config_map("one"))).status_code == 201
    assert (await user.request("GET", f"{path}/one")).status_code == 200
    for method, verb in (("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete")):
        message = (
            f'configmaps "one" is forbidden: User "{name}" cannot {verb} resource "configmaps" in API group "" in the '
            f'namespace "{api.namespace}"'
        )
        assert await user.refused(method, f"{path}/one", {}, kind=MERGE) == (403, "Forbidden", message)
    assert (await user.refused("GET", path))[0] == 403
    assert (await user.refused("GET", path, watch="1"))[0] == 403
    message = f'nodes is forbidden: User "{name}" cannot list resource "nodes" in API group "" at the cluster scope'
    assert await user.refused("GET", "/api/v1/nodes") == (403, "Forbidden", message)
    message = f'forbidden: User "{name}" cannot get path "/metrics"'
    assert await user.refused("GET", "/metrics") == (403, "Forbidden", message)


async def test_resource_names_limit_a_role(api: KubernetesClient) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"], "resourceNames": ["mine"]}
    user = await allow(api, rule)
    path = api.path("configmaps")
    await api.create(path, config_map("mine"))
    assert (await user.request("GET", f"{path}/mine")).status_code == 200
    assert (await user.request("GET", path, fieldSelector="metadata.name=mine")).status_code == 200
    assert (await user.request("GET", path)).status_code == 403
    assert (await user.request("POST", path, config_map("other"))).status_code == 403


async def test_access_review_answers_by_the_same_rules(api: KubernetesClient) -> None:
    user = await allow(api, {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]})
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    wanted = {"namespace": api.namespace, "verb": "create", "resource": "pods", "subresource": "exec"}
    found = await user.create(path, {"spec": {"resourceAttributes": wanted}})
    assert found["status"]["allowed"] is True
    assert found["status"]["reason"].startswith(
        f'RBAC: allowed by RoleBinding "server/{api.namespace}" of Role "server"'
    )
    found = await user.create(path, {"spec": {"resourceAttributes": {**wanted, "verb": "get"}}})
    assert found["status"] == {"allowed": False}


async def test_exec_needs_both_verbs(api: KubernetesClient) -> None:
    both = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]}
    user = await allow(api, both)
    path = f"{api.path('pods', 'none')}/exec"
    query = {"command": "true", "stdout": "true"}
    assert (await user.refused("GET", path, **query))[0] == 404
    for kept, lost in (("get", "create"), ("create", "get")):
        rule = {**both, "verbs": [kept]}
        await api.request("PATCH", api.path("roles", "server", group=RBAC), {"rules": [rule]}, kind=MERGE)
        expected = 'cannot get resource "pods/exec"' if lost == "get" else 'pods "none" is forbidden: '
        async with asyncio.timeout(30):
            while expected not in (await user.refused("GET", path, **query))[2]:
                await asyncio.sleep(0.02)  # a real authorizer hears of a change of a role a moment later


async def test_pod_security_refuses_by_the_namespace_label(api: KubernetesClient) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await api.request("PATCH", f"/api/v1/namespaces/{api.namespace}", {"metadata": {"labels": labels}}, kind=MERGE)
    await api.create(api.path("pods"), pod("fine"), dryRun="All")
    plain = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    message = (
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container '
        '"main" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "main" '
        'must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "main" must set '
        'securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )
    assert await api.refused("POST", api.path("pods"), plain, dryRun="All") == (403, "Forbidden", message)
    labels = {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"}
    await api.request("PATCH", f"/api/v1/namespaces/{api.namespace}", {"metadata": {"labels": labels}}, kind=MERGE)
    while (await api.request("POST", api.path("pods"), plain, dryRun="All")).status_code == 403:
        await asyncio.sleep(0.05)  # a real server hears of a label a moment later
    assert api.warnings[0].startswith('299 - "would violate PodSecurity \\"restricted:latest\\": allowPrivilege')
    spec: dict[str, Any] = {"hostNetwork": True, "volumes": [{"name": "h", "hostPath": {"path": "/"}}]}
    capable = [{"name": "main", "image": "i", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}]
    worse = {"metadata": {"name": "x"}, "spec": {**spec, "containers": capable}}
    message = (
        'pods "x" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities (container "main" '
        'must not include "NET_ADMIN" in securityContext.capabilities.add), host namespaces (hostNetwork=true), '
        'hostPath volumes (volume "h")'
    )
    assert await api.refused("POST", api.path("pods"), worse, dryRun="All") == (403, "Forbidden", message)


async def test_quota_refuses_with_its_sums(api: KubernetesClient) -> None:
    hard = {"pods": "1", "limits.cpu": "1", "requests.memory": "1Gi"}
    await api.create(api.path("resourcequotas"), {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    await api.wait(api.path("resourcequotas", "small"), lambda one: one.get("status", {}).get("used"))
    item = pod("x", nodeSelector={"no": "node"})
    message = 'pods "x" is forbidden: failed quota: small: must specify limits.cpu for: main; requests.memory for: main'
    assert await api.refused("POST", api.path("pods"), item) == (403, "Forbidden", message)
    item["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2500m", "memory": "1536Mi"}}
    message = (
        'pods "x" is forbidden: exceeded quota: small, requested: limits.cpu=2500m,requests.memory=1536Mi, used: '
        "limits.cpu=0,requests.memory=0, limited: limits.cpu=1,requests.memory=1Gi"
    )
    assert await api.refused("POST", api.path("pods"), item) == (403, "Forbidden", message)
    item["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "500m", "memory": "1Gi"}}
    await api.create(api.path("pods"), item)
    used = {"pods": "1", "limits.cpu": "500m", "requests.memory": "1Gi"}
    await api.wait(api.path("resourcequotas", "small"), lambda one: one["status"]["used"] == used)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("serviceAccountName", 'error looking up service account {}/none: serviceaccount "none" not found'),
        ("runtimeClassName", 'pod rejected: RuntimeClass "none" not found'),
        ("priorityClassName", "no PriorityClass with name none was found"),
    ],
)
async def test_pod_with_an_unknown_name_is_forbidden(api: KubernetesClient, field: str, message: str) -> None:
    expected = f'pods "x" is forbidden: {message.format(api.namespace)}'
    assert await api.refused("POST", api.path("pods"), pod("x", **{field: "none"})) == (403, "Forbidden", expected)


async def test_webhooks_refuse_and_change(cluster: FakeCluster, api: KubernetesClient) -> None:
    def review(_: str, item: dict[str, Any]) -> dict[str, Any] | None:
        if item["metadata"]["name"] == "refused":
            raise Denied("images must come from our registry")
        if item["metadata"]["name"] == "broken":
            raise TimeoutError("context deadline exceeded")
        return {**item, "metadata": {**item["metadata"], "annotations": {"seen": "yes"}}}

    cluster.admission.webhooks.append(Webhook("policy.example.com", review))
    message = 'admission webhook "policy.example.com" denied the request: images must come from our registry'
    assert await api.refused("POST", api.path("pods"), pod("refused")) == (403, "Forbidden", message)
    code, reason, message = await api.refused("POST", api.path("pods"), pod("broken"))
    assert (code, reason) == (500, "InternalError")
    assert 'failed calling webhook "policy.example.com": failed to call webhook: Post "https://' in message
    assert (await api.create(api.path("pods"), pod("x")))["metadata"]["annotations"] == {"seen": "yes"}
