import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from roost.agents.models.gateway.errors import UnknownModel, UpstreamTimeout
from roost.agents.models.gateway.model import ModelInfo, ModelTimeouts, ModelUsage
from roost.agents.models.gateway.service import CompletionStream, ModelGateway
from roost.core import clock
from roost.core.db import Database
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import UpstreamLimited, UpstreamUnavailable
from roost.identity.caller import Caller, CallerKind
from tests.agents.models.gateway.model_env import ControlledUpstream, piece
from tests.drivers.model.local import until

AGENT = Caller(CallerKind.RELAY, "t", agent_id="a")
TENANT = Caller(CallerKind.SERVICE, "t", key_id="k")
COUNT = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}


@pytest.fixture
def upstream() -> ControlledUpstream:
    return ControlledUpstream()


@pytest.fixture
async def gateway(database: Database, upstream: ControlledUpstream) -> AsyncIterator[ModelGateway]:
    made = ModelGateway(database, [upstream], timeouts=ModelTimeouts(idle=0.1))
    await made.start()
    yield made
    await made.stop()


def _request(model: str = "one", **more: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": model, "messages": [{"role": "user", "content": "hello"}], **more})


def _streamed(model: str = "one", **more: Any) -> ChatRequest:
    return _request(model, stream=True, **more)


async def _all(answer: CompletionStream) -> Sequence[dict[str, Any]]:
    try:
        return [chunk async for chunk in answer]
    finally:
        await answer.aclose()


async def _counted(gateway: ModelGateway) -> list[tuple[Any, ...]]:
    return [
        (usage.agent_id, usage.model, usage.requests, usage.prompt_tokens, usage.completion_tokens)
        for usage in await gateway.list_usage("t")
    ]


async def test_it_lists_and_shows_models(gateway: ModelGateway) -> None:
    offer = await gateway.get_offer()
    assert offer.ids == ["one", "two", "controlled/one", "controlled/two"]
    assert offer.models[0] == ModelInfo("one", "controlled")
    assert await gateway.get("controlled/two") == ModelInfo("controlled/two", "controlled")
    with pytest.raises(UnknownModel):
        await gateway.get("three")


async def test_the_upstream_sees_its_own_name_of_the_model(gateway: ModelGateway, upstream: ControlledUpstream) -> None:
    await gateway.complete(AGENT, _request("controlled/two"))
    await _all(await gateway.stream(AGENT, _streamed("two")))
    assert [request.model for request in upstream.requests] == ["two", "two"]


async def test_every_answer_is_counted_for_its_caller(gateway: ModelGateway, upstream: ControlledUpstream) -> None:
    upstream.answer = {**upstream.answer, "usage": COUNT}
    upstream.chunks = [piece("hello"), piece(finish="stop"), {"choices": [], "usage": COUNT}]
    await gateway.complete(AGENT, _request("one"))
    await _all(await gateway.stream(AGENT, _streamed("controlled/one")))
    await gateway.complete(TENANT, _request("two"))
    assert await _counted(gateway) == [("", "controlled/two", 1, 10, 3), ("a", "controlled/one", 2, 20, 6)]
    assert await gateway.list_usage("t", "a") == [ModelUsage("t", "a", "controlled/one", _today(), 2, 20, 6)]
    assert await gateway.list_usage("other") == []


def _today() -> str:
    return clock.utc_now().date().isoformat()


async def test_days_are_counted_apart_and_old_ones_left_out(
    gateway: ModelGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in (datetime(2026, 1, 1, 23, 59, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)):
        monkeypatch.setattr(clock, "utc_now", lambda moment=moment: moment)
        await gateway.complete(AGENT, _request())
    assert [usage.day for usage in await gateway.list_usage("t")] == ["2026-01-31", "2026-01-01"]
    monkeypatch.setattr(clock, "utc_now", lambda: datetime(2026, 2, 1, tzinfo=UTC))
    assert [usage.day for usage in await gateway.list_usage("t")] == ["2026-01-31"]


async def test_usage_is_asked_for_but_shown_only_to_those_who_asked(
    gateway: ModelGateway, upstream: ControlledUpstream
) -> None:
    upstream.chunks = [
        {"choices": [], "prompt_filter_results": [], "usage": None},
        piece("hello", usage=None),
        piece(finish="stop", usage=COUNT),
        {"choices": [], "usage": COUNT},
    ]
    shown = await _all(await gateway.stream(AGENT, _streamed(stream_options={"include_usage": True})))
    assert shown == upstream.chunks
    hidden = await _all(await gateway.stream(AGENT, _streamed()))
    assert hidden == [{"choices": [], "prompt_filter_results": []}, piece("hello"), piece(finish="stop")]
    assert all(request.wants_usage for request in upstream.requests)


async def test_an_answer_that_is_left_is_ended_and_counted_as_far_as_it_came(
    gateway: ModelGateway, upstream: ControlledUpstream
) -> None:
    upstream.chunks = [piece("x" * 40), piece("never seen")]
    upstream.holds = True
    answer = await gateway.stream(AGENT, _streamed())
    async for _ in answer:
        break
    await answer.aclose()
    await answer.aclose()
    assert await _counted(gateway) == [("a", "controlled/one", 1, 2, 10)]


async def test_failure_before_the_first_piece_is_raised_and_not_counted(
    gateway: ModelGateway, upstream: ControlledUpstream
) -> None:
    upstream.chunks = [UpstreamLimited(retry_after=3)]
    with pytest.raises(UpstreamLimited):
        await gateway.stream(AGENT, _streamed())
    assert await _counted(gateway) == []


async def test_failure_after_pieces_follows_them(gateway: ModelGateway, upstream: ControlledUpstream) -> None:
    upstream.chunks = [piece("a"), piece("b"), UpstreamUnavailable()]
    seen: list[Any] = []
    answer = await gateway.stream(AGENT, _streamed())
    with pytest.raises(UpstreamUnavailable):
        seen.extend([chunk async for chunk in _record_usage(answer, seen)])
    await answer.aclose()
    assert len(seen) == 2
    assert (await _counted(gateway))[0][2] == 1


async def _record_usage(answer: CompletionStream, seen: list[Any]) -> AsyncIterator[Any]:
    async for chunk in answer:
        seen.append(chunk)
        yield chunk


async def test_an_upstream_that_falls_silent_is_given_up(gateway: ModelGateway, upstream: ControlledUpstream) -> None:
    upstream.holds = True
    answer = await gateway.stream(AGENT, _streamed())
    with pytest.raises(UpstreamTimeout):
        await _all(answer)
    assert upstream.left == 1
    upstream.chunks = []
    with pytest.raises(UpstreamTimeout):
        await gateway.stream(AGENT, _streamed())
    assert upstream.left == 2


async def test_a_caller_who_gives_up_ends_the_request_upstream(
    gateway: ModelGateway, upstream: ControlledUpstream
) -> None:
    upstream.holds = True
    waiting = asyncio.ensure_future(gateway.complete(AGENT, _request()))
    await until(lambda: upstream.waiting == 1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert upstream.left == 1
    assert await _counted(gateway) == []


async def test_a_stop_writes_down_and_closes(database: Database, upstream: ControlledUpstream) -> None:
    gateway = ModelGateway(database, [upstream])
    await gateway.start()
    await gateway.complete(AGENT, _request())
    await gateway.stop()
    assert upstream.closed == 1
    assert len(await ModelGateway(database, [ControlledUpstream()]).list_usage("t")) == 1


async def test_slots_are_per_agent_and_the_tenant_has_its_own(gateway: ModelGateway) -> None:
    other = Caller(CallerKind.GATEWAY, "t", agent_id="b")
    with gateway.acquire_slot(AGENT) as slot, gateway.acquire_slot(TENANT), gateway.acquire_slot(other):
        slot.reserve(10)
