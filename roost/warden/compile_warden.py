"""Compile the warden: `python3 -I compile_warden.py <its folder>` writes `warden.pyc` and the caches of its modules.

It must be the Python that runs the warden. An import of a module that is a file costs 0.2 ms, so `warden.pyc` has the
modules of every start; those that are imported within functions remain files.
"""

import __future__

import ast
import compileall
import marshal
import py_compile
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

_UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


def main(folder: Path) -> None:
    compileall.compile_dir(folder, quiet=1, invalidation_mode=_UNCHECKED)
    modules: dict[str, CodeType] = {}
    _add_module(modules, folder, "service")
    program = _compile(_parse(folder, "warden"), "warden")
    constants = tuple(tuple(modules.items()) if constant == () else constant for constant in program.co_consts)
    code = marshal.dumps(program.replace(co_consts=constants))
    (folder / "warden.pyc").write_bytes(MAGIC_NUMBER + bytes(12) + code)  # a program's date is not checked


def _add_module(modules: dict[str, CodeType], folder: Path, name: str) -> None:
    """Add a module after those that it imports when it is loaded."""
    tree = _parse(folder, name)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and node.module not in modules:
            _add_module(modules, folder, node.module)
    modules[name] = _compile(tree, name)


def _parse(folder: Path, name: str) -> ast.Module:
    return ast.parse((folder / f"{name}.py").read_bytes())


def _compile(tree: ast.Module, name: str) -> CodeType:
    """Compile a module with the meaning of `from __future__ import annotations`, which is a file of its own."""
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    flags = __future__.annotations.compiler_flag
    return compile(tree, f"{name}.py", "exec", flags, dont_inherit=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
