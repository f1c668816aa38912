"""A skill as the guide writes it, on the real engines: each lists it at once, and no longer once it is detached."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.journeys.server_process import Up, until, up

pytestmark = [pytest.mark.container, pytest.mark.engine, pytest.mark.timeout(200)]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "skills.md"


def follow_guide(server: Up, folder: Path, agent: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the commands of "Write a skill", and return the responses of its two requests."""
    chapter = GUIDE.read_text().partition("## Write a skill")[2].partition("\n## ")[0]
    write, register, attach = map(
        textwrap.dedent, re.findall(r"^ *```\n(.*?)^ *```$", chapter, re.DOTALL | re.MULTILINE)
    )
    address = f"http://agents.localhost:{httpx.URL(server.url).port}"
    register = register.replace("http://agents.localhost:8642", address)
    roost = f'roost() {{ {sys.executable} -m roost "$@" --data {server.data}; }}\n'
    registered = run(folder, roost + write + register)
    variables = f"AGENT={agent['agentId']}\nCID={registered['skill']['skillCid']}\n"
    keys = "\n".join(line for line in register.splitlines() if line.startswith(("KEY=", "API=")))
    return registered["skill"], run(folder, f"{roost}{variables}{keys}\n{attach}")


def run(folder: Path, script: str) -> dict[str, Any]:
    done = subprocess.run(
        ["/bin/sh", "-ec", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def list_loaded(client: httpx.Client, path: str) -> dict[str, bool]:
    return {one["name"]: one["loaded"] for one in client.get(path).json()["skills"]}


@pytest.mark.parametrize("engine", ["hermes", "openclaw"])
def test_the_engine_lists_a_skill_at_once(tmp_path: Path, engine: str) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server, server.client() as client:
        agent = server.create("Ada", engine)
        path = f"/v0/agents/{agent['agentId']}/skills"
        skill, attached = follow_guide(server, tmp_path, agent)
        assert skill["verdict"]["level"] == "clean"
        assert skill["warnings"] == []
        (record,) = attached["skills"]
        assert (record["version"], record["synced"], record["loaded"]) == ("1.0.0", True, True)
        command = {"command": "skills/word-count/scripts/count.sh skills/word-count/scripts/count.sh"}
        ran = client.post(f"/v0/agents/{agent['agentId']}/console/exec", json=command).json()
        assert (ran["stdout"].strip(), ran["exitCode"]) == ("5", 0), ran
        more = {"file": ("SKILL.md", b"---\nname: second\ndescription: Another one.\n---\n\nSay hello.\n")}
        second = client.post("/v0/skills", files=more).json()["skill"]
        assert client.post(path, json={"skillCids": [second["skillId"]]}).json()["attached"] == 1
        assert list_loaded(client, path) == {"word-count": True, "second": True}
        assert client.post(f"/v0/agents/{agent['agentId']}/restart").status_code == 200
        until(lambda: list_loaded(client, path) == {"word-count": True, "second": True}, every=0.5)

        assert client.delete(f"{path}/{skill['skillId']}").status_code == 200
        assert list_loaded(client, path) == {"second": True}
