import asyncio
from collections.abc import Sequence

import pytest

from roost.agents.models.gateway.catalog import ModelCatalog, ModelListing
from roost.agents.models.gateway.errors import UnknownModel
from roost.agents.models.gateway.model import MAX_OFFERED_MODELS, NO_MODEL, ModelInfo
from roost.core import clock
from roost.drivers.model.contract import UpstreamRefused, UpstreamUnavailable
from tests.agents.models.gateway.model_env import ControlledUpstream


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 100.0
        monkeypatch.setattr(clock, "monotonic_seconds", lambda: self.time)


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def make_catalog(
    *upstreams: ControlledUpstream, default: str | None = None, fallback: ModelCatalog | None = None
) -> ModelCatalog:
    return ModelCatalog([ModelListing(upstream) for upstream in upstreams], default, fallback=fallback)


async def _ids(catalogue: ModelCatalog) -> Sequence[str]:
    return (await catalogue.get_offer()).ids


async def test_the_default_upstreams_models_have_two_names() -> None:
    catalogue = make_catalog(ControlledUpstream("near", ["a", "b"]), ControlledUpstream("far", ["b", "c/d"]))
    assert await _ids(catalogue) == ["a", "b", "near/a", "near/b", "far/b", "far/c/d"]


async def test_the_default_may_be_any_upstream_and_any_of_its_models() -> None:
    near, far = ControlledUpstream("near", ["a", "b"]), ControlledUpstream("far", ["b", "c/d"])
    assert (await _ids(make_catalog(near, far, default="far")))[:2] == ["b", "c/d"]
    assert (await _ids(make_catalog(near, far, default="far/c/d")))[:2] == ["c/d", "b"]
    assert (await make_catalog(near, far, default="far").get_offer()).models[0] == ModelInfo("b", "far")


async def test_a_model_is_found_by_each_of_its_names() -> None:
    near, far = ControlledUpstream("near", ["a", "far/c"]), ControlledUpstream("far", ["a", "c"])
    catalogue = make_catalog(near, far)
    assert await catalogue.find("a") == (near, "a")
    assert await catalogue.find("near/a") == (near, "a")
    assert await catalogue.find("near/far/c") == (near, "far/c")
    assert await catalogue.find("far/a") == (far, "a")
    assert await catalogue.find("far/c") == (far, "c")


@pytest.mark.parametrize("model", ["c", "x", "x/a", "far/x", "near/", "/a", "near", "A"])
async def test_other_models_are_unknown(model: str) -> None:
    catalogue = make_catalog(ControlledUpstream("near", ["a"]), ControlledUpstream("far", ["c"]))
    with pytest.raises(UnknownModel, match="does not exist"):
        await catalogue.find(model)


async def test_upstreams_are_asked_once_in_a_while(fake_clock: Clock) -> None:
    near = ControlledUpstream("near", ["a"])
    catalogue = make_catalog(near)
    await asyncio.gather(*(catalogue.find("a") for _ in range(20)))
    assert near.asked == 1
    near.serves = ["b"]
    fake_clock.time += 29
    assert await _ids(catalogue) == ["a", "near/a"]
    fake_clock.time += 2
    assert await _ids(catalogue) == ["b", "near/b"]


async def test_known_models_stay_when_an_upstream_goes(fake_clock: Clock) -> None:
    near = ControlledUpstream("near", ["a"])
    catalogue = make_catalog(near)
    await catalogue.find("a")
    near.serves = UpstreamUnavailable()
    fake_clock.time += 31
    assert await catalogue.find("a") == (near, "a")
    assert near.asked == 2
    with pytest.raises(UnknownModel):
        await catalogue.find("b")
    near.serves = ["b"]
    fake_clock.time += 6
    assert await catalogue.find("b") == (near, "b")


@pytest.mark.parametrize("problem", [UpstreamUnavailable("gone"), UpstreamRefused("no such page")])
async def test_an_upstream_that_never_told_is_unavailable_and_not_asked_all_the_time(
    fake_clock: Clock, problem: UpstreamUnavailable | UpstreamRefused
) -> None:
    near, far = ControlledUpstream("near"), ControlledUpstream("far", ["a"])
    near.serves = problem
    catalogue = make_catalog(near, far)
    for _ in range(3):
        with pytest.raises(UpstreamUnavailable, match=problem.message):
            await catalogue.find("a")
    assert await catalogue.find("far/a") == (far, "a")
    assert await _ids(catalogue) == ["far/a"]
    assert near.asked == 1
    fake_clock.time += 6
    await _ids(catalogue)
    assert near.asked == 2


def test_names_have_to_be_clear() -> None:
    for upstreams, default in [
        ([], None),
        ([ControlledUpstream("a"), ControlledUpstream("a")], None),
        ([ControlledUpstream("a")], "b"),
    ]:
        with pytest.raises(ValueError, match="upstream"):
            make_catalog(*upstreams, default=default)


async def test_an_agents_own_stand_above_the_deployments() -> None:
    deployment = make_catalog(ControlledUpstream("near", ["a", "b"]), ControlledUpstream("far", ["c"]))
    own = make_catalog(
        ControlledUpstream("mine", ["m", "far/c"]), ControlledUpstream("near", ["a"]), fallback=deployment
    )
    assert await _ids(own) == ["m", "far/c", "mine/m", "mine/far/c", "near/a"]
    assert await _ids(deployment) == ["a", "b", "near/a", "near/b", "far/c"]


async def test_own_model_wins_a_shared_name_and_others_stay_reachable() -> None:
    near, far = ControlledUpstream("near", ["a", "b"]), ControlledUpstream("far", ["c"])
    mine, also = ControlledUpstream("mine", ["m", "far/c"]), ControlledUpstream("near", ["a"])
    own = make_catalog(mine, also, fallback=make_catalog(near, far))
    assert await own.find("near/a") == (also, "a")
    assert await own.find("far/c") == (mine, "far/c")
    assert await own.find("near/b") == (near, "b")
    assert await own.find("b") == (near, "b")
    with pytest.raises(UnknownModel):
        await own.find("c")


async def test_own_providers_that_do_not_tell_leave_the_deployments() -> None:
    mine, near = ControlledUpstream("mine"), ControlledUpstream("near", ["a"])
    mine.serves = UpstreamUnavailable("gone")
    own = make_catalog(mine, fallback=make_catalog(near))
    offer = await own.get_offer()
    assert (offer.ids, offer.complete) == (["near/a"], False)
    assert offer.problems == ["The model provider mine does not list its models: gone"]
    assert await own.find("near/a") == (near, "a")
    for model in ("mine/one", "one"):
        with pytest.raises(UpstreamUnavailable, match="gone"):
            await own.find(model)


async def test_an_offer_is_never_empty_and_never_endless() -> None:
    near = ControlledUpstream("near", [f"m{number}" for number in range(3000)])
    offer = await make_catalog(near).get_offer()
    assert (len(offer.ids), len(offer.models), offer.complete) == (MAX_OFFERED_MODELS, 6000, True)
    near = ControlledUpstream("near")
    near.serves = UpstreamUnavailable("gone")
    offer = await make_catalog(near).get_offer()
    assert (offer.ids, offer.complete) == ([NO_MODEL], False)


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
