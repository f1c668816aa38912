"""Logs: the last lines without control characters, credentials masked; the reason of a stopped agent."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.workspace.logs.model import LogFilter, LogLevel, LogMessage, TooManyLogReaders
from roost.agents.workspace.logs.service import MAX_READERS, LogService
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity import tenants
from roost.identity.caller import Plan

DEADLINE = 20.0


@pytest.fixture
def dialect() -> str:
    return "sqlite"


class LogEnv:
    def __init__(self, db: Database, folder: Path) -> None:
        self.db, self.runtime = db, FakeRuntime(folder)
        self.agents = AgentRepository(db, Sealer(Sensitive(bytes(32))), dict.fromkeys(Plan, 5), "host")
        self.runtimes = AgentRuntimes(self.agents, self.runtime, [])
        self.logs = LogService(self.runtimes, self.get_private_values)
        owner = db.run(lambda c: tenants.ensure_tenant(c, "acme").id)
        self.values: list[Sensitive[str]] = []
        self.agent: Agent = db.run(lambda c: self.agents.create(c, owner, AgentProfile("Ada"), "fake", "1"))

    async def get_private_values(self, agent_id: str) -> dict[str, Sensitive[str]]:
        token = await self.agents.get_internal_token(agent_id)
        return {str(number): value for number, value in enumerate([token, *self.values])}

    async def write_lines(self, *lines: str | bytes) -> list[str]:
        """Print lines in the container; return the log without times."""
        text = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        warden = self.runtimes.get_warden(self.agent.id)
        program = f"import sys; sys.stdout.buffer.write({text!r} + b'over\\n')"
        await warden.start("gateway", ["python3", "-c", program], env={}, restart=False)
        async with asyncio.timeout(DEADLINE):
            while "over" not in [line.text for line in await warden.logs(limit=1)]:
                await asyncio.sleep(0.01)
        filtered = (await self.logs.tail(self.agent.id)).split("\n")
        return [line.partition(" ")[2] for line in filtered if not line.endswith("] over")]


@pytest.fixture
async def logs_env(database: Database, tmp_path: Path) -> AsyncIterator[LogEnv]:
    made = LogEnv(database, tmp_path / "data")
    await made.runtime.start(ContainerSpec(made.agent.id))
    yield made
    await made.runtime.delete(made.agent.id)


async def test_lines_have_a_time_and_a_source(logs_env: LogEnv) -> None:
    await logs_env.write_lines("hello")
    first = (await logs_env.logs.tail(logs_env.agent.id)).split("\n")[0]
    time, source, text = first.split(" ")
    assert time.endswith("Z")
    assert len(time) == len("2026-01-02T03:04:05.000000Z")
    assert (source, text) == ("[gateway]", "hello")


async def test_the_last_hundred(logs_env: LogEnv) -> None:
    lines = await logs_env.write_lines(*(f"line {number}" for number in range(150)))
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
async def test_nothing_steers_a_terminal(logs_env: LogEnv, written: str | bytes, shown: str) -> None:
    assert await logs_env.write_lines(written) == [f"[gateway] {shown}"]


async def test_our_credentials_are_masked_even_in_disguise(logs_env: LogEnv) -> None:
    token = (await logs_env.agents.get_internal_token(logs_env.agent.id)).reveal()
    coloured = token[:20] + "\x1b[1m" + token[20:]
    for line in await logs_env.write_lines(f"key {token}", f"GET /?token={token} 200", coloured):
        assert "[redacted]" in line
        assert token[8:40] not in line


async def test_without_a_container_the_reason_stands_for_the_log(logs_env: LogEnv) -> None:
    await logs_env.runtime.stop(logs_env.agent.id, grace=0)
    assert await logs_env.logs.tail(logs_env.agent.id) == ""
    reason = "It broke.\n\x1b[31mred\x1b[0m line"
    logs_env.db.run(lambda c: logs_env.agents.set_state(c, logs_env.agent.id, AgentState.FAILED, reason))
    assert await logs_env.logs.tail(logs_env.agent.id) == "It broke.\nred line"


async def test_nobody_has_no_log(logs_env: LogEnv) -> None:
    with pytest.raises(AgentNotFound):
        await logs_env.logs.tail("nobody")


async def test_secrets_are_masked_by_their_values(logs_env: LogEnv) -> None:
    logs_env.values += [Sensitive('cor"rect horse'), Sensitive("two\nlines-of-it"), Sensitive("abc")]
    written = [
        'say cor"rect horse!',
        json.dumps({"level": "info", "message": 'a cor"rect horse'}),
        "GET /?q=cor%22rect%20horse",
        "[cor/lines-of-it] x",
        "abc",
    ]
    assert await logs_env.write_lines(*written) == [
        "[gateway] say [redacted]!",
        "[gateway] a [redacted]",
        "[gateway] GET /?q=[redacted]",
        "[cor/[redacted]] x",
        "[gateway] abc",
    ]


async def test_only_what_is_wanted(logs_env: LogEnv) -> None:
    await logs_env.write_lines("plain", "ERROR gateway.run: broken", "WARNING other: odd", "[gateway/ws] open")

    async def filtered(wanted: LogFilter) -> list[str]:
        return [line.partition(" ")[2] for line in (await logs_env.logs.tail(logs_env.agent.id, wanted)).split("\n")]

    assert await filtered(LogFilter(LogLevel.WARN)) == ["[gateway/run] ERROR broken", "[other] WARN odd"]
    assert await filtered(LogFilter(source="gateway")) == [
        "[gateway] plain",
        "[gateway/run] ERROR broken",
        "[gateway/ws] open",
        "[gateway] over",
    ]


async def test_many_follow_and_each_gets_what_was_and_what_comes(logs_env: LogEnv) -> None:
    await logs_env.write_lines("before")
    with logs_env.logs.follow(logs_env.agent.id) as first, logs_env.logs.follow(logs_env.agent.id) as second:
        assert [await text(first), await text(first)] == ["before", "over"]
        assert [await text(second), await text(second)] == ["before", "over"]
        await logs_env.runtimes.get_warden(logs_env.agent.id).start("other", ["echo", "more"], env={}, restart=False)
        assert [await text(first), await text(second)] == ["more", "more"]
        with logs_env.logs.follow(logs_env.agent.id) as late:
            assert [await text(late) for _ in range(3)] == ["before", "over", "more"]


async def test_a_stream_goes_on_in_a_new_container(logs_env: LogEnv) -> None:
    await logs_env.write_lines("one")
    with logs_env.logs.follow(logs_env.agent.id) as messages:
        assert [await text(messages), await text(messages)] == ["one", "over"]
        await logs_env.runtime.stop(logs_env.agent.id, grace=0)
        await logs_env.runtime.start(ContainerSpec(logs_env.agent.id))
        await logs_env.write_lines("two")
        assert [await text(messages), await text(messages)] == ["two", "over"]


async def test_a_stream_ends_with_its_agent(logs_env: LogEnv) -> None:
    with logs_env.logs.follow(logs_env.agent.id) as messages:
        logs_env.db.run(lambda connection: logs_env.agents.mark_deleted(connection, logs_env.agent.id))
        await logs_env.runtime.stop(logs_env.agent.id, grace=0)
        with pytest.raises(AgentNotFound):
            await text(messages)


async def test_so_many_follow_and_no_more(logs_env: LogEnv) -> None:
    with ExitStack() as streams:
        for _ in range(MAX_READERS):
            streams.enter_context(logs_env.logs.follow(logs_env.agent.id))
        with pytest.raises(TooManyLogReaders):
            streams.enter_context(logs_env.logs.follow(logs_env.agent.id))
    with logs_env.logs.follow(logs_env.agent.id):
        pass


async def text(messages: AsyncIterator[LogMessage]) -> str:
    async with asyncio.timeout(DEADLINE):
        return (await anext(messages)).message
