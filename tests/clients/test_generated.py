"""Clients that generators make from the description have a method for each operation."""

import asyncio
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.web.service_registry import ServiceRegistry
from tests.support import node

FOLDER = Path(__file__).parent / "generated"
CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost-tests"

_GIT = [f"application/x-git-{service}" for service in ("upload-pack", "receive-pack")]
PARTS = dict.fromkeys(
    [
        "application/offset+octet-stream",
        "application/vnd.ipld.car",
        "application/zip",
        *(f"{kind}-{part}" for kind in _GIT for part in ("advertisement", "request", "result")),
    ],
    "application/octet-stream",
)
"""Types of uploads (TUS), archives and Git, which the generator does not know."""


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = create_application(ServiceRegistry(), HostAddresses(public_port=8642))
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    path.write_text(json.dumps(app.openapi()))
    return path


def operation_ids(description: Path) -> set[str]:
    paths: dict[str, dict[str, Any]] = json.loads(description.read_text())["paths"]
    return {operation["operationId"] for methods in paths.values() for operation in methods.values()}


def test_a_python_client_has_all_operations_and_models(description: Path, tmp_path: Path) -> None:
    made = tmp_path / "client"
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"content_type_overrides": PARTS}))
    command = [python_generator(), "generate", "--path", description, "--meta", "none", "--output-path", made]
    command += ["--config", config]
    generated = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
    assert "WARNING" not in generated.stdout + generated.stderr  # it leaves out what it cannot describe
    modules = {path.stem for path in made.glob("api/*/*.py")} - {"__init__"}
    assert modules == {to_snake(name) for name in operation_ids(description)}


async def test_typescript_has_all_operations_and_compiles(description: Path, tmp_path: Path) -> None:
    packages = node.installed(FOLDER)
    for command in (
        ("openapi-typescript/bin/cli.js", description, "-o", tmp_path / "api.ts"),
        ("typescript/bin/tsc", "--strict", "--noEmit", tmp_path / "api.ts"),
    ):
        process = await asyncio.create_subprocess_exec("node", packages / command[0], *command[1:])
        assert await asyncio.wait_for(process.wait(), 120) == 0
    operations = (tmp_path / "api.ts").read_text().partition("export interface operations {")[2]
    assert {name for name in operation_ids(description) if f"\n    {name}: {{" in operations} == operation_ids(
        description
    )


def python_generator() -> Path:
    """Return the generator, installed once into a cache; its requirements do not fit beside the project's own."""
    requirements = FOLDER / "requirements.txt"
    cache = CACHES / f"generator-{hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "complete").exists():
            venv.create(cache / "venv", clear=True, with_pip=True)
            install = [cache / "venv/bin/python", "-m", "pip", "install", "-q", "--require-hashes", "-r", requirements]
            subprocess.run(install, check=True, timeout=300)
            (cache / "complete").touch()
    return cache / "venv/bin/openapi-python-client"
