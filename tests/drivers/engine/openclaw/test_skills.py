"""Why a skill is not used, from every answer that a gateway can give; the conformance tests have the real one."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.openclaw.skills import OpenClawSkills
from tests.drivers.engine.openclaw.test_rpc import TOKEN, Gateway, gateway

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
