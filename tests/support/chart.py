"""The chart as Helm renders it, and its values."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.code import ROOT
from tests.support.kubernetes_programs import ProgramsUnavailable, fetch_kubernetes_programs

CHART = ROOT / "deploy/chart"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
VALUES: Mapping[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Mapping[str, Any] = json.loads((CHART / "values.schema.json").read_text())
NAMESPACE = "roost-system"

Object = Mapping[str, Any]


class ChartRefused(Exception):  # noqa: N818 - what Helm says of values
    """Helm does not render the chart."""


def run_helm(*arguments: str) -> str:
    """Run Helm; skips the test where it cannot be had. Raises ChartRefused."""
    try:
        helm = fetch_kubernetes_programs().helm
    except ProgramsUnavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run([helm, *arguments], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise ChartRefused(done.stdout + done.stderr)
    return done.stdout


def render_text(example: str, *options: str, release: str = "roost") -> str:
    """Return the chart with the values of an example, as YAML. Raises ChartRefused."""
    values = str(CHART / f"examples/{example}.yaml")
    return run_helm("template", release, str(CHART), "-n", NAMESPACE, "-f", values, *options)


@cache
def render_chart(example: str, *options: str, release: str = "roost") -> Sequence[Object]:
    """Return the objects of the chart with the values of an example. Raises ChartRefused."""
    text = render_text(example, *options, release=release)
    return [one for one in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if one]


def find_objects(objects: Sequence[Object], kind: str, name: str = "") -> Sequence[Object]:
    """Return the objects of a kind whose names end with `name`."""
    return [one for one in objects if one["kind"] == kind and one["metadata"]["name"].endswith(name)]


def find_object(objects: Sequence[Object], kind: str, name: str = "") -> Object:
    (found,) = find_objects(objects, kind, name)
    return found


def pod_templates(objects: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    """Return the templates of pods by kind and name of their objects."""
    for one in objects:
        if "template" in one.get("spec", {}):
            yield f"{one['kind']}/{one['metadata']['name']}", one["spec"]["template"]


def containers(objects: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    for name, template in pod_templates(objects):
        pod = template["spec"]
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield f"{name} {container['name']}", container


def server_variables(objects: Sequence[Object]) -> Mapping[str, Object]:
    """Return the environment variables of the servers by name."""
    server = find_object(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return {variable["name"]: variable for variable in server["env"]}


def value_paths(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Return the path of every value and group of values, like `image.tag`."""
    for name, value in values.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from value_paths(value, f"{prefix}{name}.")


def schema_paths(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Object]]:
    """Return the path of every value in the schema, with its schema."""
    for name, part in schema.get("properties", {}).items():
        resolved = SCHEMA["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        yield f"{prefix}{name}", resolved
        yield from schema_paths(resolved, f"{prefix}{name}.")


def undocumented_values(path: Path) -> Iterator[str]:
    """Return the lines with values that have a comment neither beside nor above them."""
    above = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r" *(- )?\w+:", line) and "#" not in line and not above.lstrip().startswith("#"):
            yield f"{number}: {line}"
        above = line
