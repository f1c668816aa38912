"""Logs as people read them: the last lines, plain, with our credentials masked, and a reason where there is no box."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.agents.logs.service import Logs
from roost.agents.roster.errors import AgentGone
from roost.agents.roster.model import Agent, AgentState, Profile
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import BoxSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity import tenants
from roost.identity.caller import Plan

DEADLINE = 20.0


@pytest.fixture
def dialect() -> str:
    return "sqlite"


class Rig:
    def __init__(self, db: Database, folder: Path) -> None:
        self.db, self.runtime = db, FakeRuntime(folder)
        self.roster = Roster(db, Sealer(Sensitive(bytes(32))), dict.fromkeys(Plan, 5))
        self.reach = Reach(self.roster, self.runtime, [])
        self.logs = Logs(self.roster, self.reach)
        owner = db.run(lambda c: tenants.ensure(c, "acme").id)
        self.agent: Agent = db.run(lambda c: self.roster.admit(c, owner, Profile("Ada"), "fake", "1"))

    async def wrote(self, *lines: str | bytes) -> list[str]:
        """The log after a process wrote these lines, without times."""
        text = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        warden = self.reach.warden(self.agent.id)
        program = f"import sys; sys.stdout.buffer.write({text!r} + b'over\\n')"
        await warden.start("gateway", ["python3", "-c", program], env={}, restart=False)
        async with asyncio.timeout(DEADLINE):
            while "over" not in [line.text for line in await warden.logs(limit=1)]:
                await asyncio.sleep(0.01)
        told = (await self.logs.tail(self.agent.id)).split("\n")
        return [line.partition(" ")[2] for line in told if not line.endswith("] over")]


@pytest.fixture
async def rig(database: Database, tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(database, tmp_path / "data")
    await made.runtime.start(BoxSpec(made.agent.id))
    yield made
    await made.runtime.delete(made.agent.id)


async def test_lines_have_a_time_and_a_source(rig: Rig) -> None:
    await rig.wrote("hello")
    first = (await rig.logs.tail(rig.agent.id)).split("\n")[0]
    time, source, text = first.split(" ")
    assert time.endswith("Z")
    assert len(time) == len("2026-01-02T03:04:05.000000Z")
    assert (source, text) == ("[gateway]", "hello")


async def test_the_last_hundred(rig: Rig) -> None:
    lines = await rig.wrote(*(f"line {number}" for number in range(150)))
    assert lines == [f"[gateway] line {number}" for number in range(51, 150)]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("a\x07b", "a\ufffdb"),
        ("10 %\r20 %", "10 %\ufffd20 %"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("tab\there", "tab\there"),
        ("Büro 🐣", "Büro 🐣"),
    ],
)
async def test_nothing_steers_a_terminal(rig: Rig, written: str | bytes, shown: str) -> None:
    assert await rig.wrote(written) == [f"[gateway] {shown}"]


async def test_our_credentials_are_masked_even_in_disguise(rig: Rig) -> None:
    token = (await rig.roster.internal_token(rig.agent.id)).reveal()
    coloured = token[:20] + "\x1b[1m" + token[20:]
    for line in await rig.wrote(f"key {token}", f"GET /?token={token} 200", coloured):
        assert "[redacted]" in line
        assert token[8:40] not in line


async def test_without_a_box_the_reason_stands_for_the_log(rig: Rig) -> None:
    await rig.runtime.stop(rig.agent.id, grace=0)
    assert await rig.logs.tail(rig.agent.id) == ""
    reason = "It broke.\n\x1b[31mred\x1b[0m line"
    rig.db.run(lambda c: rig.roster.move(c, rig.agent.id, AgentState.FAILED, reason))
    assert await rig.logs.tail(rig.agent.id) == "It broke.\nred line"


async def test_nobody_has_no_log(rig: Rig) -> None:
    with pytest.raises(AgentGone):
        await rig.logs.tail("nobody")
