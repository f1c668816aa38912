"""The lines of the guide for programs, with the real clients, on a machine whose resolver knows no `*.localhost`."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from roost import config
from roost.drivers.engine.node import node_folder
from tests.journeys.server_process import up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "agent-address.md"


def test_the_lines_for_python_and_typescript_reach_an_agent(tmp_path: Path) -> None:
    engines = config.load_settings().engines
    python = next(engines.glob("hermes/*/bin/python"))
    packages = next(engines.glob("openclaw/*/node_modules"))
    with up(tmp_path / "data", "--no-first-agent") as server:
        agent = server.create("Ada", "hermes")
        token = server.roost("agents", "token", "Ada").stdout.strip()
        port = server.url.rpartition(":")[2]
        lines = {
            language: text.replace("8642", port)
            .replace("ID.", f"{agent['agentId']}.")
            .replace("GATEWAY_TOKEN", f'"{token}"')
            for language, text in re.findall(r"```(python|typescript)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        }
        (tmp_path / "client.py").write_text(lines["python"])
        (tmp_path / "client.mjs").write_text(lines["typescript"])
        (tmp_path / "node_modules").symlink_to(packages)
        for argv in ([str(python), "client.py"], [str(node_folder(engines) / "bin" / "node"), "client.mjs"]):
            environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
            done = subprocess.run(
                argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.strip()
