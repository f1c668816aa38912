import json
import re
from collections.abc import Mapping
from typing import Any

import yaml
from contents import server_settings

from roost import __version__
from roost.settings import Settings
from tests.architecture.code import ROOT

COMPOSE: Mapping[str, Any] = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())
SERVER: Mapping[str, Any] = COMPOSE["services"]["server"]


def test_the_server_is_of_this_version_with_settings_that_exist() -> None:
    assert SERVER["image"] == f"roost-server:{__version__}"
    settings = {name.removeprefix("ROOST_").lower() for name in SERVER["environment"] if name.startswith("ROOST_")}
    assert settings <= Settings.model_fields.keys()


def test_both_images_of_the_server_are_run_the_same_way() -> None:
    text = (ROOT / "deploy/images/server.Dockerfile").read_text()
    settings = server_settings()
    environment = re.search(r"^ENV (.*)$", text, re.MULTILINE)
    assert environment
    assert environment[1].split() == settings["Env"]
    for name, value in (("ENTRYPOINT", settings["Entrypoint"]), ("CMD", settings["Cmd"])):
        assert f"\n{name} {json.dumps(value)}\n" in text
    assert f"\nUSER {settings['User']}\n" in text
    assert f"\nVOLUME {settings['WorkingDir']}\n" in text


def test_the_server_keeps_its_state_in_volumes_and_has_no_rights_but_the_socket() -> None:
    for service in COMPOSE["services"].values():
        for volume in service["volumes"]:
            assert volume.split(":")[0] in COMPOSE["volumes"] or "docker.sock" in volume
    assert (SERVER["read_only"], SERVER["cap_drop"]) == (True, ["ALL"])
    assert "no-new-privileges:true" in SERVER["security_opt"]
    assert not SERVER.keys() & {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc", "user"}
    assert all(port.startswith("127.0.0.1:") for port in SERVER["ports"])
    assert not any("ports" in COMPOSE["services"][name] for name in ("postgres", "s3"))
