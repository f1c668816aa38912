"""The built dashboard: its size, its place in the wheel, its types, and its units."""

import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.dashboard.browser import BUILT, ROOT, SOURCE

BUDGET = 250 * 1024
_PATIENCE = 120


def run(*command: str, cwd: Path = SOURCE) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def imports(name: str, seen: set[str]) -> set[str]:
    """Return a built file and the files that it imports at once."""
    if name not in seen:
        seen.add(name)
        text = (BUILT / "assets" / name).read_text()
        for found in re.findall(r"(?:from|import)\s*[\"']\./([\w.-]+\.js)[\"']", text):
            imports(found, seen)
    return seen


def test_the_first_view_is_small() -> None:
    page = (BUILT / "index.html").read_text()
    entries = set(re.findall(r"/assets/([\w.-]+\.js)", page))
    entries |= {path.name for path in (BUILT / "assets").glob("list-*.js")}
    assert len(entries) >= 2
    scripts: set[str] = set()
    for entry in entries:
        imports(entry, scripts)
    styles = [path.name for path in (BUILT / "assets").glob("*.css")]
    size = sum(len(gzip.compress((BUILT / "assets" / name).read_bytes())) for name in [*scripts, *styles])
    assert 50 * 1024 < size < BUDGET


def test_no_file_needs_what_the_policy_forbids() -> None:
    for path in (BUILT / "assets").glob("*.js"):
        assert not re.search(r"\beval\(|new Function\(", path.read_text()), path.name
    page = (BUILT / "index.html").read_text()
    assert page.count("__NONCE__") == 2
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (SOURCE / "package-lock.json").read_text()


def test_a_wheel_has_the_pages(tmp_path: Path) -> None:
    run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"),
        *("--disable-pip-version-check", "-w", str(tmp_path), str(ROOT)),
        cwd=tmp_path,
    )
    names = zipfile.ZipFile(next(tmp_path.glob("roost-*.whl"))).namelist()
    assert "roost/http/dashboard/static/index.html" in names
    assert len([name for name in names if name.startswith("roost/http/dashboard/static/assets/")]) > 10
    assert not [name for name in names if "node_modules" in name]


def test_types_fit_the_api_and_units_work() -> None:
    """Generate the types of this server's API, compile everything against them, and run the units."""
    (SOURCE / "build").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    described = subprocess.run(
        [sys.executable, "-m", "roost", "api", "openapi"], capture_output=True, check=True, cwd=ROOT, env=environment
    ).stdout
    assert json.loads(described)["openapi"].startswith("3.1")
    (SOURCE / "build" / "openapi.json").write_bytes(described)
    run("npm", "run", "--silent", "schema")
    run("npm", "run", "--silent", "types")
    assert "passed" in run("npm", "test", "--silent")


@pytest.mark.parametrize("folder", ["node_modules", "build"])
def test_git_ignores_what_is_made(folder: str) -> None:
    assert run("git", "check-ignore", f"dashboard/{folder}/x", cwd=ROOT)


def test_the_notices_have_the_licences_of_what_ships() -> None:
    intro, *notices = re.split(r"\n-{80}\n", (BUILT / "third-party-notices.txt").read_text())
    shipped = {notice.partition(" ")[0]: notice for notice in notices}
    assert intro.startswith(f"This dashboard contains code of {len(notices)} packages")
    locked = json.loads((SOURCE / "package-lock.json").read_text())["packages"]
    for name in ("react", "react-dom", "@tanstack/react-router", "@codemirror/view", "react-markdown", "tus-js-client"):
        assert shipped[name].startswith(f"{name} {locked[f'node_modules/{name}']['version']} (")
    assert not {"vite", "typescript", "axe-core", "vitest"} & shipped.keys()
    without_text = [name for name, notice in shipped.items() if len(notice) < 300]
    assert not without_text
