"""uv, which installs Python packages in parallel, with the registries and certificates of pip (decision 0052).

`scripts/setup.py` uses it, too, so it imports the standard library only.
"""

import ast
import subprocess
from collections.abc import Sequence
from pathlib import Path

_SECTIONS = ("global", "install", ":env:")  # as in pip, a later one wins
_OPTIONS = {"index-url": "--default-index", "extra-index-url": "--index"}


def uv_command(python: Path) -> Sequence[str]:
    """Return the start of a command that installs packages with the uv that stands beside a Python."""
    settings: dict[str, str] = {}
    lines = _list_pip_settings(python).splitlines()  # such as `:env:.index-url='https://...'`, in no order to rely on
    for section in _SECTIONS:
        for line in lines:
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                settings[name.removeprefix(f"{section}.")] = ast.literal_eval(value)
    certificate = [f"SSL_CERT_FILE={settings['cert']}"] if "cert" in settings else []
    command = [
        "/usr/bin/env",
        *certificate,
        str(python.parent / "uv"),
        "pip",
        "install",
        "--no-config",
        "--no-progress",
    ]
    # As pip does. By default, uv asks only the first registry that knows a name.
    command += ["--index-strategy", "unsafe-best-match"]
    for name, option in _OPTIONS.items():
        for url in settings.get(name, "").split():
            command += [option, url]
    return command


def _list_pip_settings(python: Path) -> str:
    command = [str(python), "-I", "-m", "pip", "config", "list"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout
