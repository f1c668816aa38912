import asyncio

import pytest

from roost.agents.models.gateway.listing import ModelListing
from roost.drivers.model.contract import UpstreamRefused, UpstreamUnavailable
from tests.agents.models.gateway.model_env import ControlledUpstream


async def test_many_who_ask_at_once_make_one_question() -> None:
    near = ControlledUpstream("near", ["a"])
    listing = ModelListing(near)
    assert await asyncio.gather(*(listing.get_models() for _ in range(20))) == [["a"]] * 20
    assert near.asked == 1


async def test_one_that_is_too_slow_counts_as_unavailable() -> None:
    near = ControlledUpstream("near", ["a"])
    near.stalls = True
    with pytest.raises(UpstreamUnavailable, match="near does not list its models in time"):
        await ModelListing(near, timeout=0.01).get_models()


async def test_the_problem_tells_what_the_upstream_said() -> None:
    near = ControlledUpstream("near")
    near.serves = UpstreamRefused("no such page")
    with pytest.raises(UpstreamUnavailable, match="near does not list its models: no such page"):
        await ModelListing(near).get_models()
