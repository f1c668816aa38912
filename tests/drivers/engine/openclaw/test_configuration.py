"""The writing of a configuration, against a gateway that does not keep what it is sent."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from roost.drivers.engine.abilities.inside import Inside
from roost.drivers.engine.contract import Dial
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.runtime.warden import Warden
from tests.drivers.engine.openclaw.gateway import TOKEN, Gateway, gateway
from tests.drivers.engine.openclaw.test_config import SETUP

MINE = {"messages": {"ackReaction": "owl"}}


class Keeper:
    """Keeps what it is sent, but for its first `lost` writes, and never the keys that it drops."""

    def __init__(self, lost: int = 0, dropped: str = "") -> None:
        self.file: dict[str, Any] = {"was": "there"}
        self.writes = 0
        self._lost = lost
        self._dropped = dropped

    async def answer(self, gateway: Gateway, request: dict[str, Any]) -> None:
        if request["method"] == "config.set":
            self.writes += 1
            if self.writes > self._lost:
                self.file = json.loads(request["params"]["raw"])
                self.file.pop(self._dropped, None)
        mark = str(self.writes)
        raw = json.dumps(self.file)
        await gateway.result(request, {"raw": raw, "hash": mark, "appliedConfigHash": mark, "configRevisionHash": mark})


class Box:
    """As much of a warden as a write needs."""

    def __init__(self, dial: Dial) -> None:
        self.dial = dial

    async def read(self, *_: object, **__: object) -> bytes:
        return b"{}"

    async def write(self, *_: object, **__: object) -> None:
        raise AssertionError("nothing was to be undone")


async def write(keeper: Keeper, tmp_path: Path) -> None:
    async with gateway(keeper.answer) as dial:
        inside = Inside(cast("Warden", Box(dial)), TOKEN, "2026.9.6")
        assert (await OpenClaw(tmp_path).configuration.write(inside, SETUP, json.dumps(MINE))).live


async def test_what_is_kept_is_written_once(tmp_path: Path) -> None:
    keeper = Keeper()
    await write(keeper, tmp_path)
    assert (keeper.writes, keeper.file["messages"]) == (1, MINE["messages"])


async def test_what_got_lost_is_written_once_more(tmp_path: Path) -> None:
    keeper = Keeper(lost=1)
    await write(keeper, tmp_path)
    assert (keeper.writes, keeper.file["messages"]) == (2, MINE["messages"])


@pytest.mark.parametrize("dropped", ["messages", "models"])
async def test_what_the_gateway_leaves_out_each_time_is_its_decision(tmp_path: Path, dropped: str) -> None:
    keeper = Keeper(dropped=dropped)
    await write(keeper, tmp_path)
    assert keeper.writes == 2
