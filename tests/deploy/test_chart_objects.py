"""Objects of the chart that work together: hooks, network policies, generated Secrets."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import create_engine, inspect

from tests.architecture.code import ROOT
from tests.support.chart import (
    CHART,
    NAMESPACE,
    find_object,
    find_objects,
    pod_templates,
    render_chart,
    run_helm,
    server_variables,
)

AGENT = {"app.kubernetes.io/name": "roost-agent"}
HOSTS = ["", "agents.", "*.agents.", "api.", "uploads.", "*.gateways."]


def test_migrations_come_before_the_servers() -> None:
    given = find_object(render_chart("production"), "Job", "-migrations")["metadata"]["annotations"]
    assert given["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert given["argocd.argoproj.io/hook"] == "PreSync"
    objects = render_chart("try")
    own = find_object(objects, "Job", "-migrations")["metadata"]["annotations"]
    assert own["helm.sh/hook"] == "pre-upgrade", "before an installation there is no database"
    database = find_object(objects, "StatefulSet", "-postgresql")["metadata"]["annotations"]
    wave = "argocd.argoproj.io/sync-wave"
    assert own["argocd.argoproj.io/hook"] == "Sync"
    assert int(database[wave]) < int(own[wave]) < 0


def test_hooks_need_nothing_that_comes_after_them() -> None:
    for name in ("production", "openshift", "try"):
        objects = render_chart(name)
        hooks = [one for one in objects if "helm.sh/hook" in one["metadata"].get("annotations", {})]
        made = {(one["kind"], one["metadata"]["name"]) for one in hooks}
        for path, template in pod_templates(hooks):
            pod = template["spec"]
            account = pod.get("serviceAccountName", "default")
            assert account == "default" or ("ServiceAccount", account) in made, path
            maps = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
            assert all(("ConfigMap", one) in made for one in maps), path


def test_the_command_of_the_job_migrates(tmp_path: Path) -> None:
    (container,) = find_object(render_chart("production"), "Job", "-migrations")["spec"]["template"]["spec"][
        "containers"
    ]
    url = tmp_path / "database_url"
    url.write_text(f"sqlite:///{tmp_path}/elsewhere.db\n")
    folder = tmp_path / "data"
    folder.mkdir()
    variables = {"ROOST_DATA": str(folder), "ROOST_DATABASE_URL_FILE": str(url), "PATH": os.environ["PATH"]}
    assert variables.keys() - {"PATH"} <= {one["name"] for one in container["env"]}
    command = [sys.executable, "-m", "roost", *container["args"]]
    subprocess.run(command, check=True, env=variables, capture_output=True, timeout=60)
    assert inspect(create_engine(f"sqlite:///{tmp_path}/elsewhere.db")).has_table("alembic_version")


def test_agents_are_closed_but_for_the_servers() -> None:
    for name, namespace, selector in (
        ("try", NAMESPACE, {"matchLabels": AGENT}),
        ("production", "roost-agents", {}),
        ("argocd", "agents", {}),
    ):
        objects = render_chart(name)
        deny, allow = (find_object(objects, "NetworkPolicy", f"-agents-{end}") for end in ("deny", "from-servers"))
        assert deny["spec"] == {"podSelector": selector, "policyTypes": ["Ingress", "Egress"]}
        assert {deny["metadata"]["namespace"], allow["metadata"]["namespace"]} == {namespace}
        assert deny["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert allow["spec"]["podSelector"] == {"matchLabels": AGENT}
        assert "egress" not in allow["spec"]
        ((peer,),) = [rule["from"] for rule in allow["spec"]["ingress"]]
        assert ("namespaceSelector" in peer) == (namespace != NAMESPACE)
        server = find_object(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
        assert peer["podSelector"]["matchLabels"].items() <= server.items()


def test_servers_reach_each_other_and_the_api_server() -> None:
    policy = find_object(render_chart("production"), "NetworkPolicy", "roost-servers")["spec"]
    ports = {tuple(port["port"] for port in rule.get("ports", ())): rule for rule in policy["egress"]}
    assert "to" not in ports[443, 6443], "no selector finds the API server, which is on its host's network"
    peers = next(rule for rule in policy["ingress"] if rule["ports"] == [{"port": "peers", "protocol": "TCP"}])
    server = find_object(render_chart("production"), "Deployment")["spec"]["template"]
    assert peers["from"][0]["podSelector"]["matchLabels"].items() <= server["metadata"]["labels"].items()
    assert {"name": "peers", "containerPort": 8643, "protocol": "TCP"} in server["spec"]["containers"][0]["ports"]
    assert find_object(render_chart("try"), "NetworkPolicy", "roost-servers")["spec"]["policyTypes"] == ["Ingress"]


def test_servers_know_their_own_address() -> None:
    for name, address in (("try", "$(POD_IP):8643"), ("argocd", "[$(POD_IP)]:8643")):
        variables = server_variables(render_chart(name))
        assert next(iter(variables)) == "POD_IP", "a variable must be defined before it is used"
        assert variables["ROOST_PEER_ADDRESS"]["value"] == address


def test_all_names_below_the_domain_lead_to_the_servers() -> None:
    names = [f"{part}roost.example.com" for part in HOSTS]
    ingress = find_object(render_chart("production"), "Ingress")["spec"]
    assert [rule["host"] for rule in ingress["rules"]] == [*names, "assistant.example.org"]
    assert ingress["tls"] == [{"secretName": "roost-tls", "hosts": [*names, "assistant.example.org"]}]
    route = find_object(render_chart("openshift"), "HTTPRoute")["spec"]
    assert route["hostnames"] == [f"{part}roost.apps.example.com" for part in HOSTS]
    assert route["rules"][0]["backendRefs"] == [{"name": "roost", "port": 80}]


def test_the_namespace_of_agents_stays_when_the_release_goes() -> None:
    namespace = find_object(render_chart("production"), "Namespace")["metadata"]
    assert namespace["annotations"]["helm.sh/resource-policy"] == "keep"
    assert namespace["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_metrics_are_read_with_the_token_of_the_secret() -> None:
    (endpoint,) = find_object(render_chart("production"), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "roost-keys", "key": "metrics-token"}
    assert not find_objects(render_chart("try"), "ServiceMonitor")


def test_the_notes_name_addresses_and_commands_that_exist() -> None:
    values = str(CHART / "examples/production.yaml")
    notes = run_helm("install", "roost", str(CHART), "-n", NAMESPACE, "--dry-run=client", "-f", values)
    notes = notes.partition("\nNOTES:\n")[2]
    assert "https://agents.roost.example.com/v0" in notes
    assert "port-forward" not in notes
    for command in re.findall(r"-- roost (\w+)", notes):
        assert command in json.loads((ROOT / "roost/cli/command_names.json").read_text())[""]


class FakeSecrets(BaseHTTPRequestHandler):
    """The API of Secrets: creates, and refuses those that exist."""

    created: dict[str, Any]

    def do_POST(self) -> None:
        body = yaml.safe_load(self.rfile.read(int(self.headers["Content-Length"])))
        name, is_known = body["metadata"]["name"], body["metadata"]["name"] in self.created
        assert self.headers["Authorization"] == "Bearer token-of-the-job"
        assert self.path == f"/api/v1/namespaces/{NAMESPACE}/secrets"
        self.created.setdefault(name, body["stringData"])
        self.send_response(409 if is_known else 201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def secrets_api() -> Iterator[tuple[str, dict[str, Any]]]:
    handler = type("Handler", (FakeSecrets,), {"created": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler.created
        server.shutdown()
        thread.join()


def test_secrets_are_generated_once(secrets_api: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    url, created = secrets_api
    (tmp_path / "token").write_text("token-of-the-job")
    (container,) = find_object(render_chart("try"), "Job", "-generate-secrets")["spec"]["template"]["spec"][
        "containers"
    ]
    command = [sys.executable, str(CHART / "files/generate_secrets.py"), *container["args"]]
    environment = {**os.environ, "KUBERNETES_API": url, "SERVICE_ACCOUNT_FOLDER": str(tmp_path)}

    def generate() -> str:
        return subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=60).stdout

    assert generate().count("created") == 3
    before = {name: dict(values) for name, values in created.items()}
    assert generate().count("exists") == 3
    assert created == before
    assert re.fullmatch("[0-9a-f]{64}", created["roost-keys"]["kek"])
    database = created["roost-database"]
    assert database["url"] == f"postgresql://roost:{database['password']}@roost-postgresql/roost"


def test_generated_secrets_are_those_that_are_mounted() -> None:
    objects = render_chart("try")
    files = next(
        volume["projected"]["sources"]
        for volume in find_object(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "secrets"
    )
    mounted = {(one["secret"]["name"], one["secret"]["items"][0]["key"]) for one in files}
    assert mounted == {("roost-database", "url"), ("roost-keys", "kek"), ("roost-keys", "metrics-token")}
    assert find_object(objects, "Role", "-generate-secrets")["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}
    ]
