"""uv, which installs Python packages in parallel, with the registries and certificates of pip (decision 0052).

`scripts/setup.py` uses it, too, so it imports the standard library only.
"""

import ast
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_OPTIONS = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "cert": "SSL_CERT_FILE"}


def uv_command(python: Path) -> list[str]:
    """Return the start of a command that installs with the uv of a Python's environment."""
    return [str(python.parent / "uv"), "pip", "install", "--no-config"]


def uv_environment(python: Path) -> Mapping[str, str]:
    """Return the environment for uv. Variables of its own win; those of pip win over pip's files."""
    listed = subprocess.run(
        [str(python), "-I", "-m", "pip", "config", "list"], check=False, capture_output=True, text=True
    ).stdout
    # One registry has a name first, another the version that is locked: the hashes say which file it is.
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_NO_PROGRESS": "1"}
    for line in listed.splitlines():  # the environment's come first: `:env:.index-url='https://...'`
        name, _, value = line.partition("=")
        if variable := _OPTIONS.get(name.rpartition(".")[2]):
            found.setdefault(variable, " ".join(ast.literal_eval(value).split()))
    return found | os.environ
