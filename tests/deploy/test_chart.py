"""The chart of Helm: what it renders is valid, restricted, the same each time, and what the server reads."""

import json
import re
from collections.abc import Mapping
from typing import Any

import kubernetes_validate
import pytest
import yaml

from roost import __version__
from roost.http.server.health import CHECK_SECONDS
from roost.http.stack.url_map import find_rule
from roost.kubernetes_settings import KubernetesSettings
from roost.settings import SECRET_SETTINGS, Settings
from roost.web.url_rule import UrlFamily
from tests.support.chart import (
    CHART,
    EXAMPLES,
    NAMESPACE,
    SCHEMA,
    VALUES,
    ChartRefused,
    containers,
    find_object,
    find_objects,
    pod_templates,
    render_chart,
    render_text,
    run_helm,
    schema_paths,
    server_variables,
    undocumented_values,
    value_paths,
)
from tests.support.kubernetes.pod_security import find_violation
from tests.support.kubernetes.resources import BY_KIND
from tests.support.kubernetes.schemas import check_object

NAMES = [path.stem for path in EXAMPLES]
OLDEST, NEWEST = "1.30", "1.36"
RUNTIME_VARIABLES = {f"ROOST_{setting.upper()}" for setting in KubernetesSettings.model_fields} - {
    "ROOST_KUBERNETES_API",
    "ROOST_KUBERNETES_CLAIM_ACCESS_MODE",
    "ROOST_KUBERNETES_CONFIG",
    "ROOST_KUBERNETES_EXEC",
    "ROOST_KUBERNETES_PULL_POLICY",
    "ROOST_KUBERNETES_SERVER_NETWORKS",
    "ROOST_KUBERNETES_USER_NAMESPACES",
}
"""Settings of the Kubernetes runtime that the chart gives; `settings` of its values may have some of the others."""
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
VALUE_PATHS = frozenset(value_paths(VALUES))
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
LONG_RELEASE = "a-release-with-a-name-as-long-as-helm-accepts-fiftytwo"[:53]
SECRET_WORDS = re.compile(r"KEY|TOKEN|PASSWORD|SECRET|AUTH|KEK|DATABASE_URL", re.IGNORECASE)
RANDOM = re.compile(r"\b(lookup|rand\w*|gen\w+(Cert|Key|CA)\w*|uuidv4|now|htpasswd|bcrypt|getHostByName)\b")


@pytest.mark.parametrize("name", NAMES)
def test_helm_finds_nothing_to_complain_about(name: str) -> None:
    text = run_helm("lint", "--strict", str(CHART), "-f", str(CHART / f"examples/{name}.yaml"))
    assert "0 chart(s) failed" in text
    assert "[WARNING]" not in text


def test_the_default_values_can_be_linted() -> None:
    assert "0 chart(s) failed" in run_helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize("name", NAMES)
def test_objects_fulfil_the_schemas_of_the_api(name: str) -> None:
    for one in render_chart(name):
        if BY_KIND[one["kind"]].is_custom:
            check_object(dict(one))
            continue
        for version in (OLDEST, NEWEST):
            kubernetes_validate.validate(dict(one), version, strict=True)


def test_the_examples_have_every_kind_and_every_optional_object() -> None:
    kinds = {one["kind"] for name in NAMES for one in render_chart(name)}
    templates = "\n".join(path.read_text() for path in (CHART / "templates").glob("*"))
    assert kinds == set(re.findall(r"^kind: (\w+)$", templates, re.MULTILINE))


@pytest.mark.parametrize("name", NAMES)
def test_pods_are_restricted_and_know_no_services(name: str) -> None:
    templates = dict(pod_templates(render_chart(name)))
    assert len(templates) >= 2
    for path, template in templates.items():
        pod = template["spec"]
        assert find_violation(RESTRICTED, "enforce", pod) is None, path
        assert pod["enableServiceLinks"] is False, f"{path}: a Service named `roost` sets ROOST_PORT"
        wants_token = path.startswith("Deployment/") or "generate-secrets" in path
        assert pod["automountServiceAccountToken"] is wants_token, path


@pytest.mark.parametrize("name", NAMES)
def test_containers_have_a_read_only_root_and_requests(name: str) -> None:
    for path, container in containers(render_chart(name)):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, path
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), path


def test_no_user_is_fixed_on_openshift() -> None:
    text = render_text("openshift", "--set", "postgresql.enabled=true,postgresql.password.name=database")
    assert not re.search("runAsUser|runAsGroup|fsGroup|supplementalGroups", text)
    assert re.search("runAsUser", render_text("try"))


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_in_an_object(name: str) -> None:
    objects = render_chart(name)
    assert not find_objects(objects, "Secret")
    for path, container in containers(objects):
        for variable in container.get("env", ()):
            if SECRET_WORDS.search(variable["name"]) and "value" in variable:
                is_reference = variable["name"].endswith("_FILE") and variable["value"].startswith("/run/secrets/")
                assert is_reference or variable["name"] == "ROOST_KUBERNETES_IMAGE_PULL_SECRETS", (path, variable)
    for one in find_objects(objects, "ConfigMap"):
        assert one["data"].keys() == {"generate_secrets.py"}


@pytest.mark.parametrize("release", ["roost", "r", LONG_RELEASE])
def test_names_and_labels_are_valid(release: str) -> None:
    for name in NAMES:
        objects = render_chart(name, release=release)
        identities = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
        assert len(set(identities)) == len(identities)
        for one in objects:
            metadata = one["metadata"]
            assert DNS_LABEL.fullmatch(metadata["name"]), metadata
            assert all(map(LABEL_VALUE.fullmatch, metadata["labels"].values())), metadata
            assert one["kind"] == "Namespace" or metadata["namespace"] in {NAMESPACE, "roost-agents", "agents"}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_values_give_the_same_objects(name: str) -> None:
    assert render_text(name) == render_text(name)


def test_templates_make_nothing_up() -> None:
    for path in (CHART / "templates").glob("*"):
        expressions = re.findall(r"\{\{.*?\}\}", path.read_text(), re.DOTALL)
        assert not [text for text in expressions if RANDOM.search(text) and not text.startswith("{{- /*")], path


def test_selectors_find_the_pods_of_their_own_objects() -> None:
    for name in NAMES:
        objects = render_chart(name)
        labels = {path: template["metadata"]["labels"] for path, template in pod_templates(objects)}
        for one in (*find_objects(objects, "Service"), *find_objects(objects, "PodDisruptionBudget")):
            selector = one["spec"]["selector"].get("matchLabels", one["spec"]["selector"])
            found = [path for path, pod in labels.items() if selector.items() <= pod.items()]
            kind = "StatefulSet" if one["spec"].get("clusterIP") == "None" else "Deployment"
            assert found == [f"{kind}/{one['metadata']['name']}"]


def test_the_role_is_the_file_with_a_reason_for_each_verb() -> None:
    text = (CHART / "files/role-rules.yaml").read_text()
    rules = yaml.safe_load(text)
    verbs = re.findall(r"^ {4}- (\w+)( # \S.*)?$", text, re.MULTILINE)
    assert [verb for rule in rules for verb in rule["verbs"]] == [verb for verb, _ in verbs]
    assert all(reason for _, reason in verbs)
    assert "*" not in json.dumps(rules)
    for name in NAMES:
        objects = render_chart(name)
        role, binding = find_object(objects, "Role", "-agents"), find_object(objects, "RoleBinding", "-agents")
        assert role["rules"] == rules
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        account = find_object(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
        assert not find_objects(objects, "ClusterRole")


@pytest.mark.parametrize("name", NAMES)
def test_variables_are_settings_with_valid_values(name: str) -> None:
    known = {f"ROOST_{setting.upper()}" for setting in Settings.model_fields}
    known |= {f"ROOST_{setting.upper()}_FILE" for setting in SECRET_SETTINGS}
    for path, container in containers(render_chart(name)):
        variables = {one["name"]: one.get("value", "") for one in container.get("env", ())}
        unknown = {one for one in variables if one.startswith("ROOST_")} - known
        assert not unknown, path
        texts = {
            one.removeprefix("ROOST_").lower(): text for one, text in variables.items() if one.startswith("ROOST_")
        }
        given = {one: text for one, text in texts.items() if one in Settings.model_fields}
        address = "2001:db8::7" if name == "argocd" else "192.0.2.7"
        plain = {one: text.replace("$(POD_IP)", address) for one, text in given.items() if one != "ca_file"}
        if container["name"] == "server":
            Settings.model_validate(plain)


def test_the_variables_of_the_runtime_are_all_used() -> None:
    used = {one for name in NAMES for one in server_variables(render_chart(name)) if "KUBERNETES" in one}
    assert used == RUNTIME_VARIABLES
    agents = server_variables(render_chart("production"))
    assert json.loads(agents["ROOST_KUBERNETES_NODE_SELECTOR"]["value"]) == {"example.com/pool": "agents"}
    assert json.loads(agents["ROOST_KUBERNETES_TOLERATIONS"]["value"])[0]["effect"] == "NoSchedule"


def test_settings_of_the_chart_are_not_given_twice() -> None:
    own = {one.removeprefix("ROOST_").removesuffix("_FILE").lower() for one in server_variables(render_chart("try"))}
    own |= {"trusted_proxies", "allow_plain_http", "ca_file"}
    refused = set(SCHEMA["properties"]["settings"]["propertyNames"]["not"]["enum"])
    assert own & Settings.model_fields.keys() <= refused
    assert refused >= SECRET_SETTINGS
    assert refused <= Settings.model_fields.keys()


def test_values_and_schema_have_the_same_names() -> None:
    schema = dict(schema_paths(SCHEMA))
    resources = re.compile(r"resources\.(requests|limits)\.")  # any resource is allowed
    optional = {path for path in schema if path.endswith(".resources.limits")} | {"global"}
    assert {path for path in VALUE_PATHS if not resources.search(path)} | optional == schema.keys()
    loose = {path for path, part in schema.items() if "properties" in part and part.get("additionalProperties")}
    assert not loose
    assert SCHEMA["additionalProperties"] is False


def test_every_value_is_explained_and_used() -> None:
    assert list(undocumented_values(CHART / "values.yaml")) == []
    templates = "\n".join(path.read_text() for path in (CHART / "templates").glob("*"))
    names = {path.rpartition(".")[2] for path in VALUE_PATHS} - {"requests", "limits", "cpu", "memory"}
    fields = {"ephemeral-storage", "kek", "kekOld", "modelKey", "embeddingKey", "kuboAuth", "facilitatorToken"}
    assert {name for name in names - fields if not re.search(rf"\.{name}\b|\"{name}\"", templates)} == set()


REFUSED: Mapping[str, str] = {
    "replicas=2": "replicas",
    "server.replica=2": "replica",
    "server.replicas=two": "replicas",
    "settings.model_key=sk-secret": "model_key",
    "settings.domain=example.com": "domain",
    "proxy.https=http://user:password@proxy:3128": "https",
    "bucket.url=/data": "url",
    "domain=Example": "domain",
    "openshift=maybe": "openshift",
    "secrets.generate=false": "secrets.",
    "s3.enabled=false": "bucket.url",
    "serviceMonitor.interval=often": "interval",
    "httpRoute.enabled=true": "httpRoute.parentRefs",
    "server.drainSeconds=80": "server.stopSeconds",
    "autoscaling.enabled=true,autoscaling.cpuPercent=0": "autoscaling",
    "agents.createNamespace=true": "agents.namespace",
    "agents.pullAhead.enabled=true": "agents.pullAhead.images",
    f"httpRoute.enabled=true,httpRoute.parentRefs[0].name=g,extraHosts={{{'a.example,' * 11}}}": "extraHosts",
    "postgresql.enabled=false": "secrets.databaseUrl.name",
}


@pytest.mark.parametrize(("values", "named"), REFUSED.items())
def test_wrong_values_are_refused_by_name(values: str, named: str) -> None:
    with pytest.raises(ChartRefused, match=re.escape(named)):
        render_text("try", "--set", values)


def test_probes_ask_what_the_server_answers() -> None:
    server = find_object(render_chart("try"), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    paths = {name: server[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert all(find_rule("GET", path).family is not UrlFamily.DASHBOARD for path in paths.values())
    assert server["readinessProbe"]["timeoutSeconds"] > CHECK_SECONDS
    for probe in paths:
        assert {"name": "Host", "value": "localhost"} in server[f"{probe}Probe"]["httpGet"]["httpHeaders"]


def test_a_server_that_ends_is_drained_and_its_agents_stay() -> None:
    pod: Mapping[str, Any] = find_object(render_chart("production"), "Deployment")["spec"]
    assert pod["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert "replicas" not in pod, "the HorizontalPodAutoscaler sets it"
    spec = pod["template"]["spec"]
    assert (
        spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] + 30 < spec["terminationGracePeriodSeconds"]
    )
    assert server_variables(render_chart("production"))["ROOST_KEEP_AGENTS_ON_STOP"]["value"] == "true"


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"
    server = find_object(render_chart("try"), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert server["image"] == f"registry.example.com/team/roost-server:{__version__}"


def test_the_schemas_refuse_what_the_api_does_not_know() -> None:
    text = render_text("try", "--show-only", "templates/deployment.yaml")
    for wrong in (text.replace("readOnlyRootFilesystem", "readOnlyRoot"), text.replace("failureThreshold: 3", "x: 3")):
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(yaml.safe_load(wrong), NEWEST, strict=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"),
        ("runAsNonRoot: true", "runAsNonRoot: false"),
        ("runAsUser: 1000", "runAsUser: 0"),
        ("- ALL", "- NET_RAW"),
        ("type: RuntimeDefault", "type: Unconfined"),
        ("emptyDir: {sizeLimit: 20Gi}", "hostPath: {path: /data}"),
        ("enableServiceLinks: false", "hostNetwork: true"),
        ("containerPort: 8642", "containerPort: 8642, hostPort: 8642"),
    ],
)
def test_pod_security_is_checked(old: str, new: str) -> None:
    text = render_text("try", "--show-only", "templates/deployment.yaml")
    assert old in text
    pod = yaml.safe_load(text.replace(old, new))["spec"]["template"]["spec"]
    assert find_violation(RESTRICTED, "enforce", pod)
