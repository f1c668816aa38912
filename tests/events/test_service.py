"""Streams: order, cursors, filters, limits, and several servers of one database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from datetime import timedelta

import pytest

from roost.core.db import Database
from roost.events import service as module
from roost.events.model import MAX_STREAMS, OLDEST, EventFilter, EventType, TooManyEventStreams
from roost.events.service import KEPT_EVENTS, EventService
from roost.identity.caller import Caller, CallerKind
from tests.events.event_env import OTHER, caller, following, ids, secret, serving, take, write


@pytest.fixture
async def events(database: Database) -> AsyncIterator[EventService]:
    async with serving(database) as service:
        yield service


async def test_a_stream_begins_with_its_position_and_has_what_follows(database: Database, events: EventService) -> None:
    await write(database, secret("before"))
    async with following(events) as stream:
        first = await anext(stream)
        assert (first.type, first.number) == (EventType.HEARTBEAT, 1)
        await write(database, secret("a"))
        await write(database, secret("b"), secret("c"))
        assert [(one.number, one.subject_id) for one in await take(stream, 3)] == [(2, "a"), (3, "b"), (4, "c")]
    async with following(events, after=2) as stream:
        assert ids(await take(stream, 2)) == ["b", "c"]


async def test_tenants_scopes_types_and_agents_separate(database: Database, events: EventService) -> None:
    holder = Caller(CallerKind.GATEWAY, "tenant", agent_id="ada")
    await write(database, secret("bobs", None, "bob"), secret("free"), secret("adas", None, "ada"))
    await write(database, secret("last", None, "ada"), secret("last", OTHER))
    async with (
        following(events, holder, 0) as own,
        following(events, holder, 0, agent_id="bob") as disguised,
        following(events, caller(OTHER), 0) as other,
        following(events, after=0, agent_id="ada") as filtered,
        following(events, caller("tenant", "files", "org:files:read"), 0) as blind,
        following(events, after=0, types=frozenset({EventType.AGENT_CREATED})) as typed,
    ):
        for holders in (own, disguised, filtered):
            assert ids(await take(holders, 2)) == ["adas", "last"]
        assert ids(await take(other, 2)) == ["bobs", "last"]
        for nothing in (blind, typed):
            with pytest.raises(TimeoutError):
                await take(nothing, 1, 0.3)


async def test_each_cursor_resumes_under_load_without_loss_or_duplicates(
    database: Database, events: EventService
) -> None:
    """Streams are cut at any event and resumed, while writers add more than a feed keeps."""
    total = KEPT_EVENTS + 150

    async def add() -> None:
        for number in range(total // 5):
            await write(database, *(secret(f"{number}-{one}") for one in range(5)))

    async def follow(cut: int) -> list[int]:
        seen = list[int]()
        while len(seen) < total // 5 * 5:
            async with following(events, caller(key_id=str(cut)), seen[-1] if seen else 0) as stream:
                wanted = min(cut, total // 5 * 5 - len(seen))
                seen += [one.number for one in await take(stream, wanted, 30)]
        return seen

    _, *streams = await asyncio.gather(add(), *map(follow, (1, 7, 64, 10_000)))
    for seen in streams:
        assert seen == list(range(1, total // 5 * 5 + 1))


@pytest.mark.parametrize("after", [0, 2, 99])
async def test_a_cursor_without_all_of_its_successors_is_reset(
    database: Database, events: EventService, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    await write(database, *(secret(str(number)) for number in range(5)))
    monkeypatch.setattr(module, "MAX_EVENTS", 2)
    assert await events.sweep() == 3
    async with following(events, after=3) as stream:
        assert (await take(stream, 1))[0].number == 4
    async with following(events, after=OLDEST) as stream:
        assert [one.number for one in await take(stream, 2)] == [4, 5]
        assert (await anext(stream)).type is EventType.HEARTBEAT  # all stored events were sent
    async with following(events, after=after) as stream:
        reset = (await take(stream, 1))[0]
        assert (reset.type, reset.number) == (EventType.RESET, 5)
        await write(database, secret("live"))
        assert ids(await take(stream, 1)) == ["live"]


async def test_a_slow_reader_is_reset_when_it_missed_events(
    database: Database, events: EventService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with following(events) as stream:
        await anext(stream)  # and takes no more for a while
        for _ in range(4):
            await write(database, *(secret(str(number)) for number in range(KEPT_EVENTS)))
        monkeypatch.setattr(module, "MAX_EVENTS", 1)
        await events.sweep()
        received = await take(stream, 1)
        assert (received[0].type, received[0].number) == (EventType.RESET, 4 * KEPT_EVENTS)


async def test_events_older_than_an_hour_are_deleted(
    database: Database, events: EventService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(database, secret("a"))
    assert await events.sweep() == 0
    monkeypatch.setattr(module, "RETENTION", timedelta(0))
    assert await events.sweep() == 1


async def test_heartbeats_have_the_position(
    database: Database, events: EventService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.2)
    async with following(events, agent_id="ada") as stream:
        assert (await anext(stream)).number == 0
        await write(database, secret("of no agent"))
        async with asyncio.timeout(5):
            while (beat := await anext(stream)).number == 0:
                pass
        assert (beat.type, beat.number) == (EventType.HEARTBEAT, 1)


async def test_streams_of_a_credential_are_limited(events: EventService) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_STREAMS):
            stack.enter_context(events.follow(caller(), EventFilter(), None))
        with pytest.raises(TooManyEventStreams):
            stack.enter_context(events.follow(caller(), EventFilter(), None))
        stack.enter_context(events.follow(caller(key_id="another"), EventFilter(), None))
    with events.follow(caller(), EventFilter(), None):
        pass


async def test_events_of_another_server_arrive_within_a_second(
    database: Database, database_url: str, events: EventService
) -> None:
    with closing(Database(database_url)) as second:
        async with serving(second), following(events) as stream:
            await anext(stream)
            await write(database, secret("here"))
            await write(second, secret("there"))
            assert ids(await take(stream, 2, 1.0)) == ["here", "there"]
