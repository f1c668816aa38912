"""Creating, changing and deleting objects: what is answered, what is refused, and with which words."""

from typing import Any

import pytest

from tests.kubernetes.client import KubernetesClient, config_map, pod

MERGE, STRATEGIC, PATCH, APPLY = (
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)


async def test_created_object_has_the_metadata_of_the_server(api: KubernetesClient) -> None:
    made = await api.create(api.path("configmaps"), {"metadata": {"generateName": "made-"}, "data": {"a": "1"}})
    metadata = made["metadata"]
    assert metadata["name"].startswith("made-")
    assert len(metadata["name"]) == 10
    assert metadata["namespace"] == api.namespace
    assert {"uid", "resourceVersion", "creationTimestamp", "managedFields"} <= set(metadata)
    assert made == await api.get(api.path("configmaps", metadata["name"]))


async def test_second_creation_is_refused(api: KubernetesClient) -> None:
    await api.create(api.path("configmaps"), config_map("one"))
    found = (await api.request("POST", api.path("configmaps"), config_map("one"))).json()
    details = {"name": "one", "kind": "configmaps"}
    assert found == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "AlreadyExists",
        "message": 'configmaps "one" already exists', "details": details, "code": 409,
    }  # fmt: skip


async def test_missing_object_is_not_found(api: KubernetesClient) -> None:
    path = api.path("deployments", "none", group="/apis/apps/v1")
    found = (await api.request("GET", path)).json()
    assert (found["code"], found["message"]) == (404, 'deployments.apps "none" not found')
    assert found["details"] == {"name": "none", "group": "apps", "kind": "deployments"}
    other = api.path("pods").replace(api.namespace, "no-such-namespace")
    assert await api.refused("POST", other, pod("x")) == (404, "NotFound", 'namespaces "no-such-namespace" not found')


async def test_unknown_fields_are_dropped_or_refused(api: KubernetesClient) -> None:
    item = {**config_map("odd"), "unknown": 1}
    made = await api.create(api.path("configmaps"), item, dryRun="All")
    assert "unknown" not in made
    assert api.warnings == ['299 - "unknown field \\"unknown\\""']
    code, reason, message = await api.refused("POST", api.path("configmaps"), item, fieldValidation="Strict")
    assert (code, reason) == (400, "BadRequest")
    assert message.endswith('strict decoding error: unknown field "unknown"')
    assert (await api.request("GET", api.path("configmaps", "odd"))).status_code == 404


async def test_value_of_a_wrong_type_is_a_bad_request(api: KubernetesClient) -> None:
    item = pod("typed", terminationGracePeriodSeconds="soon")
    code, reason, message = await api.refused("POST", api.path("pods"), item)
    assert (code, reason) == (400, "BadRequest")
    assert message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field '
        "PodSpec.spec.terminationGracePeriodSeconds of type int64"
    )


NAME_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
MOUNTED = {"name": "a", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
GREEDY = {"name": "a", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"metadata": {"name": "Bad_Name"}}, f'metadata.name: Invalid value: "Bad_Name": {NAME_MESSAGE}'),
        ({"metadata": {"name": ""}}, "metadata.name: Required value: name or generateName is required"),
        ({"spec": {"containers": []}}, "spec.containers: Required value"),
        ({"spec": {"containers": [{"name": "main"}]}}, "spec.containers[0].image: Required value"),
        ({"spec": {"containers": [MOUNTED]}}, 'spec.containers[0].volumeMounts[0].name: Not found: "v"'),
        (
            {"spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Some"}},
            'spec.restartPolicy: Unsupported value: "Some": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {"spec": {"containers": [{"name": "a", "image": "i"}], "dnsPolicy": "None"}},
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            {"spec": {"containers": [GREEDY]}},
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
    ],
)
async def test_invalid_pod_is_refused(api: KubernetesClient, change: dict[str, Any], refusal: str) -> None:
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod("x")["spec"], **change}
    message = f'Pod "{item["metadata"]["name"]}" is invalid: {refusal}'
    assert await api.refused("POST", api.path("pods"), item) == (422, "Invalid", message)


async def test_pod_gets_its_defaults_and_canonical_quantities(api: KubernetesClient) -> None:
    item = pod("filled")
    item["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "0.5", "memory": "1024Mi"}}
    made = await api.create(api.path("pods"), item, dryRun="All")
    spec, container = made["spec"], made["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert container["imagePullPolicy"] == ("Always" if ":" not in container["image"] else "IfNotPresent")
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["priority"]) == ("Always", "ClusterFirst", 0)
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert [one["tolerationSeconds"] for one in spec["tolerations"]] == [300, 300]
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert made["metadata"]["generation"] == 1
    assert "resourceVersion" not in made["metadata"]


async def test_update_needs_the_current_version(api: KubernetesClient) -> None:
    made = await api.create(api.path("configmaps"), config_map("one", a="1"))
    path = api.path("configmaps", "one")
    changed = (await api.request("PUT", path, {**made, "data": {"a": "2"}})).json()
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    message = (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes '
        "to the latest version and try again"
    )
    assert await api.refused("PUT", path, made) == (409, "Conflict", message)
    foreign = {**changed, "metadata": {**changed["metadata"], "uid": "11111111-2222-3333-4444-555555555555"}}
    code, reason, message = await api.refused("PUT", path, foreign)
    assert (code, reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 11111111-2222-3333-4444-555555555555" in message


async def test_update_without_a_change_keeps_the_version(api: KubernetesClient) -> None:
    made = await api.create(api.path("configmaps"), config_map("one", a="1"))
    path = api.path("configmaps", "one")
    again = (await api.request("PUT", path, config_map("one", a="1"))).json()
    patched = (await api.request("PATCH", path, {"data": {"a": "1"}}, kind=MERGE)).json()
    versions = {one["metadata"]["resourceVersion"] for one in (made, again, patched)}
    assert len(versions) == 1


async def test_three_kinds_of_patches(api: KubernetesClient) -> None:
    await api.create(api.path("pods"), pod("one"), dryRun="All")
    await api.create(api.path("configmaps"), config_map("one", a="1", b="2"))
    path = api.path("configmaps", "one")
    merged = (await api.request("PATCH", path, {"data": {"a": None, "c": "3"}}, kind=MERGE)).json()
    assert merged["data"] == {"b": "2", "c": "3"}
    operations = [{"op": "test", "path": "/data/b", "value": "2"}, {"op": "move", "from": "/data/b", "path": "/data/d"}]
    moved = (await api.request("PATCH", path, operations, kind=PATCH)).json()
    assert moved["data"] == {"c": "3", "d": "2"}
    code, reason, _ = await api.refused("PATCH", path, operations, kind=PATCH)
    assert (code, reason) == (422, "Invalid")
    code, reason, _ = await api.refused("PATCH", path, {}, kind="text/plain")
    assert (code, reason) == (415, "UnsupportedMediaType")


async def test_strategic_patch_merges_lists_by_their_key(api: KubernetesClient) -> None:
    path = api.path("deployments", group="/apis/apps/v1")
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("x")["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    await api.create(path, {"metadata": {"name": "x"}, "spec": spec})
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "i:1"}]}}}}
    changed = (await api.request("PATCH", f"{path}/x", patch, kind=STRATEGIC)).json()
    assert {one["name"] for one in changed["spec"]["template"]["spec"]["containers"]} == {"main", "side"}
    assert changed["metadata"]["generation"] == 2
    patch = {"spec": {"template": {"spec": {"containers": [{"$patch": "delete", "name": "side"}]}}}}
    changed = (await api.request("PATCH", f"{path}/x", patch, kind=STRATEGIC)).json()
    assert [one["name"] for one in changed["spec"]["template"]["spec"]["containers"]] == ["main"]


async def test_server_side_apply_owns_fields_and_reports_conflicts(api: KubernetesClient) -> None:
    path = api.path("configmaps", "one")
    item = {**config_map("one", a="1", b="2"), "metadata": {"name": "one"}}
    made = await api.request("PATCH", path, item, kind=APPLY, fieldManager="first")
    assert made.status_code == 201
    other = {**config_map("one", a="9"), "metadata": {"name": "one"}}
    found = (await api.request("PATCH", path, other, kind=APPLY, fieldManager="second")).json()
    assert (found["code"], found["reason"]) == (409, "Conflict")
    assert found["message"] == 'Apply failed with 1 conflict: conflict with "first": .data.a'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".data.a"}
    assert found["details"]["causes"] == [cause]
    await api.request("PATCH", path, other, kind=APPLY, fieldManager="second", force="true")
    less = {**item, "data": {"c": "3"}}
    final = (await api.request("PATCH", path, less, kind=APPLY, fieldManager="first")).json()
    assert final["data"] == {"a": "9", "c": "3"}
    managers = {one["manager"]: one["fieldsV1"] for one in final["metadata"]["managedFields"]}
    assert managers == {"first": {"f:data": {"f:c": {}}}, "second": {"f:data": {"f:a": {}}}}
    code, reason, message = await api.refused("PATCH", path, item, kind=APPLY)
    assert (code, reason) == (422, "Invalid")
    assert message.endswith("fieldManager: Required value: is required for apply patch")


async def test_lease_is_created_by_an_update_and_needs_a_version(api: KubernetesClient) -> None:
    path = api.path("leases", "leader", group="/apis/coordination.k8s.io/v1")
    item = {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    made = await api.request("PUT", path, item)
    assert made.status_code == 201
    code, reason, message = await api.refused("PUT", path, item)
    assert (code, reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value" in message
    assert "must be specified for an update" in message
    taken = {**made.json(), "spec": {**item["spec"], "holderIdentity": "b"}}
    assert (await api.request("PUT", path, taken)).status_code == 200
    assert (await api.refused("PUT", path, taken))[:2] == (409, "Conflict")


async def test_deletion_keeps_preconditions_and_finalizers(api: KubernetesClient) -> None:
    item = config_map("held")
    item["metadata"]["finalizers"] = ["example.com/hold"]
    made = await api.create(api.path("configmaps"), item)
    path = api.path("configmaps", "held")
    wrong = {"preconditions": {"uid": "other"}}
    message = (
        'Operation cannot be fulfilled on ConfigMap "held": the UID in the precondition (other) does not match the '
        f"UID in record ({made['metadata']['uid']}). The object might have been deleted and then recreated"
    )
    assert await api.refused("DELETE", path, wrong) == (409, "Conflict", message)
    held = (await api.request("DELETE", path)).json()
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    patch = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    assert (await api.refused("PATCH", path, patch, kind=MERGE))[:2] == (422, "Invalid")
    await api.request("PATCH", path, {"metadata": {"finalizers": None}}, kind=MERGE)
    assert (await api.request("GET", path)).status_code == 404


async def test_deletion_answers_with_a_status_or_the_object(api: KubernetesClient) -> None:
    made = await api.create(api.path("configmaps"), config_map("one"))
    found = (await api.request("DELETE", api.path("configmaps", "one"))).json()
    details = {"name": "one", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert found == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    await api.create(api.path("serviceaccounts"), {"metadata": {"name": "one"}})
    assert (await api.request("DELETE", api.path("serviceaccounts", "one"))).json()["kind"] == "ServiceAccount"


async def test_collection_is_deleted_by_a_selector(api: KubernetesClient) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await api.create(api.path("configmaps"), config_map(name, {"kind": label}))
    found = (await api.request("DELETE", api.path("configmaps"), labelSelector="kind=x")).json()
    assert found["kind"] == "ConfigMapList"
    assert [one["metadata"]["name"] for one in found["items"]] == ["a", "b"]
    left = await api.get(api.path("configmaps"), labelSelector="kind")
    assert [one["metadata"]["name"] for one in left["items"]] == ["c"]


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_dependents_follow_their_owner(api: KubernetesClient, policy: str) -> None:
    owner = await api.create(api.path("configmaps"), config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    item = config_map("dependent")
    item["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
    await api.create(api.path("configmaps"), item)
    await api.request("DELETE", api.path("configmaps", "owner"), {"propagationPolicy": policy})
    await api.wait_gone(api.path("configmaps", "owner"))
    if policy == "Orphan":
        left = await api.get(api.path("configmaps", "dependent"))
        assert not left["metadata"].get("ownerReferences")
    else:
        await api.wait_gone(api.path("configmaps", "dependent"))


async def test_ending_namespace_takes_nothing_new(api: KubernetesClient) -> None:
    item = config_map("held")
    item["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(api.path("configmaps"), item)
    ending = (await api.request("DELETE", f"/api/v1/namespaces/{api.namespace}")).json()
    assert ending["status"]["phase"] == "Terminating"
    found = (await api.request("POST", api.path("configmaps"), config_map("late"))).json()
    assert found["message"] == (
        f'configmaps "late" is forbidden: unable to create new content in namespace {api.namespace} because it is '
        "being terminated"
    )
    assert found["details"]["causes"] == [
        {"reason": "NamespaceTerminating", "message": f"namespace {api.namespace} is being terminated",
         "field": "metadata.namespace"}
    ]  # fmt: skip
    await api.request("PATCH", api.path("configmaps", "held"), {"metadata": {"finalizers": None}}, kind=MERGE)
    await api.wait_gone(f"/api/v1/namespaces/{api.namespace}")


async def test_spec_of_a_pod_cannot_be_changed(api: KubernetesClient) -> None:
    item = pod("fixed", nodeSelector={"no": "node"})
    await api.create(api.path("pods"), item)
    patch = {"spec": {"containers": [{"name": "main", "command": ["other"]}]}}
    code, reason, message = await api.refused("PATCH", api.path("pods", "fixed"), patch, kind=STRATEGIC)
    assert (code, reason) == (422, "Invalid")
    assert message.startswith('Pod "fixed" is invalid: spec: Forbidden: pod updates may not change fields other than ')
    patch = {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}
    changed = await api.request("PATCH", api.path("pods", "fixed"), patch, kind=STRATEGIC)
    assert changed.json()["metadata"]["generation"] == 2


async def test_status_is_written_by_its_subresource_alone(api: KubernetesClient) -> None:
    made = await api.create(
        api.path("pods"), {**pod("one", nodeSelector={"no": "node"}), "status": {"phase": "Failed"}}
    )
    assert made["status"]["phase"] == "Pending"
    path = api.path("pods", "one")
    patch = {"status": {"phase": "Failed", "reason": "Test"}}
    await api.request("PATCH", path, patch, kind=MERGE)
    assert "reason" not in (await api.get(path))["status"]
    await api.request("PATCH", f"{path}/status", {**patch, "spec": {"nodeName": "x"}}, kind=MERGE)
    found = await api.get(path)
    assert found["status"]["reason"] == "Test"
    assert "nodeName" not in found["spec"]


async def test_secret_and_claim_keep_their_rules(api: KubernetesClient) -> None:
    item = {"metadata": {"name": "one"}, "stringData": {"key": "value"}, "immutable": True}
    made = await api.create(api.path("secrets"), item)
    assert (made["type"], made["data"]) == ("Opaque", {"key": "dmFsdWU="})
    code, _, message = await api.refused("PATCH", api.path("secrets", "one"), {"data": {"key": ""}}, kind=MERGE)
    assert (code, message) == (
        422,
        'Secret "one" is invalid: data: Forbidden: field is immutable when `immutable` is set',
    )
    code, _, message = await api.refused("POST", api.path("secrets"), {"metadata": {"name": "two"}, "data": {"a": "%"}})
    assert code == 400
    assert "illegal base64 data at input byte 0" in message
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none",
    }
    made = await api.create(api.path("persistentvolumeclaims"), {"metadata": {"name": "data"}, "spec": claim})
    assert made["status"] == {"phase": "Pending"}
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    patch = {"spec": {"accessModes": ["ReadOnlyMany"]}}
    code, _, message = await api.refused("PATCH", api.path("persistentvolumeclaims", "data"), patch, kind=MERGE)
    assert code == 422
    assert "spec: Forbidden: spec is immutable after creation" in message
    policy = {"podSelector": {}, "ingress": [{"ports": [{"port": 1}]}]}
    path = api.path("networkpolicies", group="/apis/networking.k8s.io/v1")
    made = await api.create(path, {"metadata": {"name": "deny"}, "spec": policy})
    assert made["spec"]["policyTypes"] == ["Ingress"]
    assert made["spec"]["ingress"] == [{"ports": [{"port": 1, "protocol": "TCP"}]}]


async def test_secret_is_created_by_protocol_buffers(api: KubernetesClient) -> None:
    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    data = field(2, field(1, b"key") + field(2, b"value"))
    secret = field(1, field(1, b"one") + field(11, field(1, b"tier") + field(2, b"x"))) + data
    body = b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"Secret")) + field(2, secret)
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf", "Accept": "application/json"}
    made = (await api.http.post(api.path("secrets"), content=body, headers=headers)).json()
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == ("one", {"tier": "x"})
    assert made["data"] == {"key": "dmFsdWU="}
