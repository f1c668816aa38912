"""Objects of agents: restricted pods without secrets, claims, and the policy."""

import json

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import BRIDGE_PORT, ContainerSpec, EngineVersion, RuntimeFailed
from roost.drivers.runtime.docker.plan import ReadOnlyFiles, read_only_files
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.plan import ClusterOptions

SPEC = ContainerSpec(
    "ada", EngineVersion("openclaw", "1.2"), env={"A": "b"}, files={"/run/trust/ca.pem": b"pem"}, egress="proxy"
)


def test_a_pod_needs_no_right() -> None:
    body = plan.pod_object(ClusterOptions(), SPEC, "secret")["spec"]
    (container,) = body["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (body["automountServiceAccountToken"], body["enableServiceLinks"], body["dnsPolicy"]) == (
        False,
        False,
        "None",
    )
    assert (body["securityContext"]["runAsNonRoot"], body["restartPolicy"]) == (True, "Never")
    assert {"initContainers", "hostNetwork", "serviceAccountName", "runtimeClassName"}.isdisjoint(body)
    assert container["image"] == "roost-openclaw:1.2"


def test_the_decisions_of_an_operator_are_in_the_pod() -> None:
    options = ClusterOptions(
        "prod",
        "registry.example/roost-{engine}:{version}",
        runtime_class="gvisor",
        pull_secrets=("pull",),
        node_selector={"pool": "agents"},
        tolerations=({"key": "agents", "operator": "Exists"},),
        priority_class="low",
        requested_memory_bytes=1 << 40,
        user=None,
        host_users=False,
        pull_policy="Always",
        claim_access_mode="ReadWriteOncePod",
    )
    body = plan.pod_object(options, SPEC, "secret")["spec"]
    assert (body["runtimeClassName"], body["priorityClassName"]) == ("gvisor", "low")
    assert (body["imagePullSecrets"], body["nodeSelector"]) == ([{"name": "pull"}], {"pool": "agents"})
    assert (body["hostUsers"], body["containers"][0]["imagePullPolicy"]) == (False, "Always")
    assert plan.claim_object(options, "ada")["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert "runAsUser" not in body["securityContext"]
    resources = body["containers"][0]["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"]
    assert body["containers"][0]["image"] == "registry.example/roost-openclaw:1.2"


def test_a_secret_is_in_no_pod() -> None:
    certificate = Sensitive("PRIVATE")
    secret = plan.secret_object(ClusterOptions(), "ada", certificate, "claim-uid")
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "claim-uid"
    other = plan.secret_object(ClusterOptions(), "ada", certificate, "other-claim")
    assert secret["metadata"]["name"] != other["metadata"]["name"]
    assert secret["data"][plan.CERTIFICATE] not in json.dumps(plan.pod_object(ClusterOptions(), SPEC, "secret"))


def test_shared_files_are_named_by_their_content() -> None:
    one, other = ReadOnlyFiles("/run/a", {"b/c": b"1", "d": b"2"}), ReadOnlyFiles("/run/a", {"b/c": b"1", "d": b"3"})
    names = [plan.read_only_map(ClusterOptions(), found)["metadata"]["name"] for found in (one, one, other)]
    assert names[0] == names[1] != names[2]
    mounted = plan.pod_object(ClusterOptions(), SPEC, "secret")["spec"]["volumes"]
    paths = [[item["path"] for item in volume["configMap"]["items"]] for volume in mounted if "configMap" in volume]
    assert ["ca.pem"] in paths
    maps = [plan.read_only_map(ClusterOptions(), found) for found in read_only_files(SPEC)]
    assert all(sum(map(len, found["binaryData"].values())) < 1 << 20 for found in maps)


@pytest.mark.parametrize("uses_exec", [False, True])
def test_only_servers_reach_an_agent_and_it_reaches_nothing(uses_exec: bool) -> None:
    options = ClusterOptions(server_labels={"a": "b"}, server_networks=("192.0.2.0/24",), uses_exec=uses_exec)
    spec = plan.network_policy(options)["spec"]
    assert (spec["egress"], spec["policyTypes"]) == ([], ["Ingress", "Egress"])
    if uses_exec:
        assert spec["ingress"] == []
    else:
        sources = [{"podSelector": {"matchLabels": {"a": "b"}}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]
        ports = [{"protocol": "TCP", "port": BRIDGE_PORT}]
        assert spec["ingress"] == [{"from": sources, "ports": ports}]
    assert (
        spec["podSelector"]["matchLabels"].items()
        <= plan.pod_object(options, SPEC, "secret")["metadata"]["labels"].items()
    )


def test_no_mesh_puts_a_sidecar_into_a_pod() -> None:
    metadata = plan.pod_object(ClusterOptions(), SPEC, "secret")["metadata"]
    assert metadata["labels"]["sidecar.istio.io/inject"] == "false"
    assert metadata["annotations"] == {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}


@pytest.mark.parametrize(("host_users", "expected"), [(None, None), (True, None), (False, 512)])
def test_processes_are_limited_in_a_user_namespace_only(host_users: bool | None, expected: int | None) -> None:
    body = plan.pod_object(ClusterOptions(host_users=host_users), SPEC, "secret")["spec"]
    limits = json.loads(body["containers"][0]["args"][0])["limits"]
    assert (limits.get("nproc"), limits["nofile"]) == (expected, 4096)
    assert body.get("hostUsers") is host_users


@pytest.mark.parametrize("agent_id", ["", "..", "a/b", "a" * 200])
def test_a_malformed_agent_id_has_no_name(agent_id: str) -> None:
    with pytest.raises(RuntimeFailed):
        ClusterOptions().object_name(agent_id)
