import json
from dataclasses import replace
from pathlib import Path

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineNotInstalled, GatewaySetup, InvalidVersionName
from roost.drivers.engine.hermes.driver import Hermes

SETUP = GatewaySetup(
    agent_id="a1",
    name="one",
    origin="http://a1.agents.localhost:8642",
    token=Sensitive("internal-token"),
    model_url="http://127.0.0.1:8799/v1",
    models=["first", "second"],
    proxy_url="http://127.0.0.1:8798",
)


def test_the_platforms_settings_are_in_files_of_their_own(tmp_path: Path) -> None:
    plan = Hermes(tmp_path).plan("0.19.0", SETUP)
    plugin = ".hermes/plugins/roost/__init__.py"  # Hermes loads plugins only from there
    assert set(plan.files) == {".roost/hermes/config.yaml", ".roost/hermes/.env", plugin}
    model = json.loads(plan.files[".roost/hermes/config.yaml"])["model"]
    assert (model["default"], model["base_url"]) == ("first", SETUP.model_url)
    assert model["ollama_num_ctx"] == 0  # chats send no other requests to the model gateway
    env = dict(line.split("=", 1) for line in plan.files[".roost/hermes/.env"].decode().splitlines())
    assert env["API_SERVER_KEY"] == "internal-token"
    assert env["API_SERVER_HOST"] == "127.0.0.1"
    assert "internal-token" not in str(plan.env) + str(plan.argv)
    assert plan.env["HERMES_GATEWAY_MAX_STARTS"] == "0"  # frequent restarts do not delay it


@pytest.mark.parametrize("content", [b"A=\0", b"export HERMES_MANAGED_DIR=/x\n", b"'HERMES_HOME'=/x\n"])
def test_an_environment_file_that_prevents_the_start_is_moved(tmp_path: Path, content: bytes) -> None:
    plan = Hermes(tmp_path).plan("0.19.0", replace(SETUP, existing={".hermes/.env": content}))
    assert plan.files[".hermes/.env"] == b""
    assert plan.files[".hermes/.env.rejected"] == content
    harmless = Hermes(tmp_path).plan("0.19.0", replace(SETUP, existing={".hermes/.env": b"TELEGRAM_BOT_TOKEN=t\n"}))
    assert ".hermes/.env" not in harmless.files


def folder(root: Path, version: str, python: Path) -> None:
    (root / "hermes" / version / "bin").mkdir(parents=True)
    (root / "hermes" / version / "bin/python3").symlink_to(python)


def test_a_version_whose_python_is_gone_does_not_count_as_installed(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.touch()
    folder(tmp_path, "0.19.0", python)
    folder(tmp_path, "0.20.0", tmp_path / "gone")
    hermes = Hermes(tmp_path)
    assert hermes.installed() == ["0.19.0"]
    with pytest.raises(EngineNotInstalled, match="install it again"):
        hermes.require("0.20.0")
    hermes.remove("0.20.0")
    hermes.remove("0.20.0")
    with pytest.raises(EngineNotInstalled, match=r"hermes 0.20.0 is not installed"):
        hermes.require("0.20.0")


@pytest.mark.parametrize("version", ["0.16.9", "0.1", "0", "x", "-r", ""])
def test_a_version_without_a_managed_scope_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(InvalidVersionName):
        Hermes(tmp_path).install(version, lambda _text, _done: None)
