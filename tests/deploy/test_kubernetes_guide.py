"""The operator's page of Kubernetes: its commands parse, its values render, and what it names is there."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperCommand, TyperGroup

from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.tls_carrier import make_bridge_certificate
from tests.architecture.code import ROOT
from tests.cli.terminal import PROGRAM
from tests.deploy.test_chart import VALUE_PATHS
from tests.support.chart import VALUES, find_objects, render_text, run_helm
from tests.support.kubernetes_programs import ProgramsUnavailable, fetch_kubernetes_programs

PAGE = (ROOT / "docs/guides/kubernetes.md").read_text()
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_RANDOM = "$(openssl rand -hex 32)"


def commands(program: str) -> list[list[str]]:
    """Return the words of each command of a program on the page, in its blocks and in its sentences."""
    blocks = "\n".join(text for language, text in _BLOCK.findall(PAGE) if not language).replace("\\\n", " ")
    lines = [line.strip() for line in blocks.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", _BLOCK.sub("", PAGE))
    found = [shlex.split(line.replace(_RANDOM, "0" * 64).partition(" | ")[0]) for line in lines if " " in line]
    return [words for words in found if words[0] == program]


def titles(found: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(words[1:])[:80] for words in found]


HELM, KUBECTL = commands("helm"), commands("kubectl")
RENDERED = [words for words in HELM if words[1] in {"install", "upgrade"}]
CREATED = [words for words in KUBECTL if "create" in words and "exec" not in words]
ROOST = [words[words.index("--") + 1 :] for words in KUBECTL if "exec" in words]


def run_kubectl(*arguments: str) -> str:
    try:
        program = fetch_kubernetes_programs().kubectl
    except ProgramsUnavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def options_of(words: Sequence[str]) -> set[str]:
    """Return the options of a command, without those of a command that it runs."""
    own = words[: words.index("--")] if "--" in words else words
    return {word.partition("=")[0] for word in own if re.match("-{1,2}[a-z]", word)}


@pytest.fixture
def values_file(tmp_path: Path) -> Path:
    (text,) = (text for language, text in _BLOCK.findall(PAGE) if language == "yaml")
    path = tmp_path / "values.yaml"
    path.write_text(text)
    return path


def render(words: Sequence[str], values: Path) -> list[dict[str, Any]]:
    """Return what Helm would send to a cluster for a command of the page."""
    places = {"values.yaml": str(values)}
    arguments = [places.get(word, str(ROOT / word) if word.startswith("deploy/") else word) for word in words[2:]]
    return [one for one in yaml.safe_load_all(run_helm("template", *arguments)) if one]


def test_the_page_has_commands_of_each_kind() -> None:
    assert len(RENDERED) >= 5
    assert len(CREATED) >= 6
    assert len(ROOST) >= 8


@pytest.mark.parametrize("words", RENDERED, ids=titles(RENDERED))
def test_a_helm_command_renders_a_release(words: Sequence[str], values_file: Path) -> None:
    objects = render(words, values_file)
    (server,) = find_objects(objects, "Deployment")
    assert (server["metadata"]["name"], server["metadata"]["namespace"]) == ("roost", "roost")


@pytest.mark.parametrize("words", HELM, ids=titles(HELM))
def test_options_of_a_helm_command_exist(words: Sequence[str]) -> None:
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", run_helm(words[1], "--help")))
    assert options_of(words) <= known


@pytest.mark.parametrize("words", KUBECTL, ids=titles(KUBECTL))
def test_options_of_a_kubectl_command_exist(words: Sequence[str]) -> None:
    bare = [word for word in words[1:] if not word.startswith("-") and word not in {"roost", "roost-agents"}]
    depth = {"create": 2 + (bare[1] == "secret"), "rollout": 2}.get(bare[0], 1)
    text = run_kubectl(*bare[:depth], "--help") + run_kubectl("options")
    assert f"kubectl {' '.join(bare[:depth])} " in text
    assert options_of(words) <= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))


@pytest.mark.parametrize("words", ROOST, ids=[" ".join(words) for words in ROOST])
def test_a_command_in_a_server_parses(words: Sequence[str]) -> None:
    assert words[0] == "roost"
    parse_roost(words[1:])


@pytest.mark.parametrize("line", ["agents made Ada", "agents create Ada --colour red", "agents show", "doctors"])
def test_a_wrong_command_of_a_server_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"No such|Missing parameter"):
        parse_roost(line.split())


def parse_roost(words: Sequence[str]) -> None:
    """Parse the words after `roost` without running anything. Raises UsageError."""
    command: TyperCommand | TyperGroup = PROGRAM
    rest = list(words)
    while isinstance(command, TyperGroup):
        _, found, rest = command.resolve_command(command.context_class(command), rest)
        assert isinstance(found, (TyperCommand, TyperGroup))
        command = found
    command.make_context(None, rest)


def test_the_secrets_of_the_page_are_those_that_its_values_name(values_file: Path, tmp_path: Path) -> None:
    made = set(create_secrets(tmp_path))
    for words in RENDERED:
        if "values.yaml" in words:
            assert set(needed_secrets(render(words, values_file))) <= made


def create_secrets(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and key of each Secret that the commands of the page create."""
    certificate = make_bridge_certificate("names").reveal()  # with its key
    for name in ("names.crt", "names.key"):
        (folder / name).write_text(certificate)
    for words in CREATED:
        arguments = [word.replace("=names.", f"={folder}/names.") for word in words[1:]]
        item = yaml.safe_load(run_kubectl(*arguments, "--dry-run=client", "-o", "yaml"))
        for key in item.get("data", ()):
            yield item["metadata"]["name"], key


def needed_secrets(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield name and key of each Secret that objects mount, take variables from, or have certificates in."""
    (server,) = find_objects(objects, "Deployment")
    pod = server["spec"]["template"]["spec"]
    for volume in pod["volumes"]:
        for source in volume.get("projected", {}).get("sources", ()):
            yield source["secret"]["name"], source["secret"]["items"][0]["key"]
    for source in pod["containers"][0]["envFrom"]:
        yield source["secretRef"]["name"], "AWS_ACCESS_KEY_ID"
    for ingress in find_objects(objects, "Ingress"):
        yield ingress["spec"]["tls"][0]["secretName"], "tls.crt"


def test_objects_of_commands_are_in_the_chart(values_file: Path) -> None:
    objects = [one for words in RENDERED for one in render(words, values_file)]
    made = {f"{one['kind'].lower()}/{one['metadata']['name']}" for one in objects}
    named = {word for words in KUBECTL for word in words if re.fullmatch("(deployment|service|job)/[a-z-]+", word)}
    assert len(named) == 4
    assert named <= made
    namespaces = {one["metadata"].get("namespace", one["metadata"]["name"]) for one in objects}
    assert {words[words.index("-n") + 1] for words in KUBECTL if "-n" in words} == namespaces


def test_values_in_sentences_are_in_the_chart() -> None:
    quoted = re.findall(r"`([a-z]\w*(?:\.[a-z]\w*)+)(?:=([^` ]+))?`", PAGE)
    found = [(path, value) for path, value in quoted if path.partition(".")[0] in VALUES]
    assert len(found) > 20
    assert {path for path, _ in found} <= VALUE_PATHS | {"values.yaml"}
    for path, value in found:
        if value:
            render_text("try", "--set", f"{path}={value}")


def test_the_requests_of_the_page_are_those_of_servers_and_agents() -> None:
    assert "A server asks for half a processor and 512 MiB, an agent for a tenth and 256 MiB" in PAGE
    requests, options = VALUES["server"]["resources"]["requests"], plan.ClusterOptions()
    assert (requests["cpu"], requests["memory"]) == ("500m", "512Mi")
    assert (options.requested_cpus, options.requested_memory_bytes) == (0.1, 256 << 20)


def test_the_table_of_policies_is_complete() -> None:
    table = PAGE.partition("| policy | allows |")[2].partition("\n\n")[0]
    shown = set(re.findall(r"`(roost-[\w-]+)`", table))
    made = [one for example in ("try", "production") for one in yaml.safe_load_all(render_text(example)) if one]
    chart = {one["metadata"]["name"] for one in find_objects(made, "NetworkPolicy")}
    assert shown == {*chart, plan.network_policy(plan.ClusterOptions())["metadata"]["name"]}
