"""The hooks that resolve and read the engine's own modules, in a real Node."""

import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from roost import config
from roost.drivers.engine.openclaw import driver
from roost.drivers.engine.openclaw.install import node_folder

pytestmark = pytest.mark.engine  # needs the installed Node

NODE = str(node_folder(config.load_settings().engines) / "bin" / "node")
ROOT = "/engine/oc/node_modules/openclaw/dist"


def run_program(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run `main.mjs` of the folder, which the hooks take for the engine's."""
    (folder / "main.mjs").write_text(program)
    hooks = driver.MODULE_HOOKS.replace(ROOT, str(folder))
    assert hooks != driver.MODULE_HOOKS
    argv = [NODE, f"--import=data:text/javascript,{quote(hooks)}", str(folder / "main.mjs")]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


def test_own_modules_keep_their_urls_and_identity(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "one.mjs").write_text('import "../main.mjs"; export const url = import.meta.url;')
    program = (
        'import { url } from "./lib/one.mjs"; import { url as same } from "./lib/../lib/one.mjs";'
        'import { basename } from "node:path"; console.log(basename(url), same === url);'
    )
    ended = run_program(tmp_path, program)
    assert (ended.stdout, ended.stderr) == ("one.mjs true\n", "")


def test_other_modules_are_left_to_node(tmp_path: Path) -> None:
    (tmp_path / "old.cjs").write_text("module.exports = { kind: 'commonjs' };")
    (tmp_path / "data.json").write_text('{"kind": "json"}')
    program = (
        'import old from "./old.cjs"; import data from "./data.json" with { type: "json" };'
        'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);'
        'console.log(old.kind, data.kind, require("./data.json").kind);'
    )
    ended = run_program(tmp_path, program)
    assert (ended.stdout, ended.stderr) == ("commonjs json json\n", "")


def test_a_missing_module_is_an_error_that_the_engine_can_catch(tmp_path: Path) -> None:
    ended = run_program(tmp_path, 'await import("./none.mjs").catch((error) => console.log(error.code));')
    assert ended.stdout == "ERR_MODULE_NOT_FOUND\n", ended.stderr
