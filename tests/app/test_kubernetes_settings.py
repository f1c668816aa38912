"""Settings that name a cluster: its access, the pods, engines as images, and a server whose agents are pods."""

import json
from pathlib import Path
from typing import Any

import pytest

from roost import config
from roost.app.doctor import run_checks
from roost.app.drivers import create_engines, create_runtime, probe_runtime
from roost.drivers.engine.contract import EngineInstallFailed, EngineNotInstalled
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.runtime.contract import EngineVersion
from roost.settings import BadSettings
from tests.conformance.clusters import running_wardens
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster
from tests.support.server import running

PODS = {
    "ROOST_KUBERNETES_NAME": "team",
    "ROOST_KUBERNETES_NAMESPACE": "agents",
    "ROOST_KUBERNETES_IMAGE_REPOSITORY": "registry.example.com/team/",
    "ROOST_KUBERNETES_STORAGE_SIZE": "2Gi",
    "ROOST_KUBERNETES_NODE_SELECTOR": '{"kubernetes.io/os": "linux"}',
    "ROOST_KUBERNETES_TOLERATIONS": '[{"key": "agents", "operator": "Exists"}]',
    "ROOST_KUBERNETES_USER": "1234",
    "ROOST_KUBERNETES_USER_NAMESPACES": "true",
    "ROOST_KUBERNETES_PULL_POLICY": "Always",
    "ROOST_KUBERNETES_SERVER_LABELS": '{"app": "roost"}',
    "ROOST_KUBERNETES_SERVER_NETWORKS": "127.0.0.0/8",
    "ROOST_KUBERNETES_ACCEPT_OPEN_NETWORK": "true",
    "ROOST_ENGINE_IMAGES": "hermes@0.20.0,hermes@0.19.0",
}


def cluster_variables(folder: Path, cluster: FakeCluster) -> dict[str, Any]:
    """Return the settings of a server of a cluster, whose kubeconfig is in a folder."""
    config = {
        "current-context": "fake",
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "admin"}}],
        "clusters": [{"name": "fake", "cluster": {"server": cluster.url}}],
        "users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return {"ROOST_RUNTIME": "kubernetes", "ROOST_KUBERNETES_CONFIG": str(path), **PODS}


def load(folder: Path, **variables: str) -> config.Settings:
    return config.load_settings({"ROOST_DATA": str(folder), "ROOST_RUNTIME": "kubernetes", **variables})


async def test_pods_are_what_the_settings_say(tmp_path: Path) -> None:
    async with running_wardens(tmp_path / "pods") as cluster:
        made: list[dict[str, Any]] = []
        cluster.store.listeners.append(
            lambda change: made.append(change.now.object) if change.now is not None and change.before is None else None
        )
        settings = load(tmp_path, **cluster_variables(tmp_path, cluster))
        found = await probe_runtime(settings, create_engines(settings), "kubernetes")
        assert (found.usable, found.error) == (True, "")
    pod = next(one for one in made if one["kind"] == "Pod")
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert pod["metadata"]["namespace"] == "agents"
    assert pod["metadata"]["name"].startswith("team-")
    assert container["image"].startswith("registry.example.com/team/roost-agent:")
    assert not container["image"].endswith(":latest")
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert {"key": "agents", "operator": "Exists"} in spec["tolerations"]
    assert spec["securityContext"]["runAsUser"] == 1234
    assert (spec["hostUsers"], container["imagePullPolicy"]) == (False, "Always")
    policy = next(one for one in made if one["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"][0]["from"] == [
        {"podSelector": {"matchLabels": {"app": "roost"}}},
        {"ipBlock": {"cidr": "127.0.0.0/8"}},
    ]


async def test_a_server_has_its_agents_in_a_cluster(tmp_path: Path) -> None:
    """A second server of the data folder finds the pod that the first one left."""
    async with running_wardens(tmp_path / "pods") as cluster:
        variables = cluster_variables(tmp_path, cluster)
        async with running(tmp_path / "data", stop=False, **variables) as server:
            client = server.client(server.key())
            created = await client.post("/v0/agents", json={"name": "Ada"})
            assert created.status_code == 201, created.text
            agent = created.json()["agent"]
            pods = cluster.store.objects("Pod", "agents")
            assert [pod["metadata"]["labels"]["roost/agent"] for pod in pods] == [agent["agentId"]]
            path = f"/v0/agents/{agent['agentId']}/console/exec"
            written = await client.post(path, json={"command": "echo kept > file"})
            assert written.json()["exitCode"] == 0, written.text
        async with running(tmp_path / "data", **variables) as server:
            client = server.client(server.key())
            read = await client.post(path, json={"command": "cat file"})
            assert read.json()["stdout"] == "kept\n", read.text
            assert [pod["metadata"]["uid"] for pod in cluster.store.objects("Pod", "agents")] == [
                pod["metadata"]["uid"] for pod in pods
            ]
            assert (await client.delete(f"/v0/agents/{agent['agentId']}")).is_success


def test_versions_of_engines_are_those_of_images(tmp_path: Path) -> None:
    openclaw, hermes = create_engines(load(tmp_path))
    assert (openclaw.installed(), hermes.installed()) == ((OpenClaw.default_version,), (Hermes.default_version,))
    assert openclaw.channels is not None
    assert "whatsapp" in openclaw.channels.supported(OpenClaw.default_version)
    (hermes,) = create_engines(load(tmp_path, ROOST_ENGINE_IMAGES="hermes@0.20.0,hermes@0.19.0"))
    assert list(hermes.installed()) == list(hermes.available()) == ["0.20.0", "0.19.0"]
    assert hermes.require("0.19.0") == EngineVersion("hermes", "0.19.0")
    with pytest.raises(EngineNotInstalled, match=r"There is no image of Hermes 0\.18\.0"):
        hermes.require("0.18.0")
    with pytest.raises(EngineInstallFailed, match="engine_images"):
        hermes.install("0.18.0", lambda step, done: None)
    assert hermes.channels is not None
    assert hermes.channels.supported("0.19.0") == {"telegram", "slack", "discord"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ROOST_OTHER_RUNTIME", "bwrap", "other_runtime: agents of a cluster cannot have it"),
        ("ROOST_AGENT_PORTS", "9000-9009", "agent_ports: agents of a cluster cannot have it"),
        ("ROOST_KUBERNETES_NAME", "Team_1", "kubernetes_name: "),
        ("ROOST_KUBERNETES_USER", "0", "kubernetes_user: must be a user without rights"),
        ("ROOST_KUBERNETES_NODE_SELECTOR", '{"pool": 1}', "kubernetes_node_selector: must be a JSON object of strings"),
        ("ROOST_KUBERNETES_NODE_SELECTOR", "pool=agents", "kubernetes_node_selector: "),
        ("ROOST_KUBERNETES_TOLERATIONS", '{"key": "agents"}', "kubernetes_tolerations: must be a JSON list of objects"),
        ("ROOST_ENGINE_IMAGES", "hermes", "engine_images: must be a list of engine@version"),
    ],
)
def test_settings_that_no_cluster_can_have(tmp_path: Path, name: str, value: str, message: str) -> None:
    with pytest.raises(BadSettings, match=f"^{message}"):
        load(tmp_path, **{name: value})


def test_images_need_another_runtime_than_bwrap(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="engine_images: bwrap has no images"):
        load(tmp_path, ROOST_RUNTIME="bwrap", ROOST_ENGINE_IMAGES="hermes@0.19.0")


def test_images_of_an_engine_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="engine_images: there is no engine claude"):
        create_engines(load(tmp_path, ROOST_ENGINE_IMAGES="claude@1"))


def test_without_a_cluster_the_reason_and_the_remedy_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="runtime: This server has no service account of a pod: name a kubeconfig"):
        create_runtime(load(tmp_path), [])


@pytest.mark.parametrize(
    ("host", "url"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")]
)
def test_a_pod_knows_its_api_server(tmp_path: Path, host: str, url: str) -> None:
    found = load(tmp_path, KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT="6443")
    assert found.kubernetes_api == url


def test_the_check_of_a_cluster_that_is_away(tmp_path: Path) -> None:
    config = {
        "current-context": "away",
        "contexts": [{"name": "away", "context": {"cluster": "away"}}],
        "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    settings = load(tmp_path, ROOST_KUBERNETES_CONFIG=str(tmp_path / "kubeconfig"))
    (check,) = (row for row in run_checks(settings) if row["part"] == "runtime kubernetes")
    assert check["status"] == "fail"
    assert "127.0.0.1:1" in check["detail"]
