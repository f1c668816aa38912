import asyncio

import pytest

from roost.agents.models.catalogue import Catalogue
from roost.agents.models.errors import UnknownModel
from roost.agents.models.model import ModelInfo
from roost.core import clock
from roost.drivers.model.contract import UpstreamRefused, UpstreamUnavailable
from tests.agents.models.house import Puppet


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 100.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.time)


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def _ids(catalogue: Catalogue) -> list[str]:
    return [model.id for model in await catalogue.list()]


async def test_the_default_upstreams_models_have_two_names() -> None:
    catalogue = Catalogue([Puppet("near", ["a", "b"]), Puppet("far", ["b", "c/d"])], None)
    assert await _ids(catalogue) == ["a", "b", "near/a", "near/b", "far/b", "far/c/d"]


async def test_the_default_may_be_any_upstream_and_any_of_its_models() -> None:
    near, far = Puppet("near", ["a", "b"]), Puppet("far", ["b", "c/d"])
    assert (await _ids(Catalogue([near, far], "far")))[:2] == ["b", "c/d"]
    assert (await _ids(Catalogue([near, far], "far/c/d")))[:2] == ["c/d", "b"]
    assert (await Catalogue([near, far], "far").list())[0] == ModelInfo("b", "far")


async def test_a_model_is_found_by_each_of_its_names() -> None:
    near, far = Puppet("near", ["a", "far/c"]), Puppet("far", ["a", "c"])
    catalogue = Catalogue([near, far], None)
    assert await catalogue.find("a") == (near, "a")
    assert await catalogue.find("near/a") == (near, "a")
    assert await catalogue.find("near/far/c") == (near, "far/c")
    assert await catalogue.find("far/a") == (far, "a")
    assert await catalogue.find("far/c") == (far, "c")


@pytest.mark.parametrize("model", ["c", "x", "x/a", "far/x", "near/", "/a", "near", "A"])
async def test_other_models_are_unknown(model: str) -> None:
    catalogue = Catalogue([Puppet("near", ["a"]), Puppet("far", ["c"])], None)
    with pytest.raises(UnknownModel, match="does not exist"):
        await catalogue.find(model)


async def test_upstreams_are_asked_once_in_a_while(hands: Clock) -> None:
    near = Puppet("near", ["a"])
    catalogue = Catalogue([near], None)
    await asyncio.gather(*(catalogue.find("a") for _ in range(20)))
    assert near.asked == 1
    near.serves = ["b"]
    hands.time += 29
    assert await _ids(catalogue) == ["a", "near/a"]
    hands.time += 2
    assert await _ids(catalogue) == ["b", "near/b"]


async def test_what_was_known_stays_when_an_upstream_goes(hands: Clock) -> None:
    near = Puppet("near", ["a"])
    catalogue = Catalogue([near], None)
    await catalogue.find("a")
    near.serves = UpstreamUnavailable()
    hands.time += 31
    assert await catalogue.find("a") == (near, "a")
    assert near.asked == 2
    with pytest.raises(UnknownModel):
        await catalogue.find("b")
    near.serves = ["b"]
    hands.time += 6
    assert await catalogue.find("b") == (near, "b")


@pytest.mark.parametrize("problem", [UpstreamUnavailable("gone"), UpstreamRefused("no such page")])
async def test_an_upstream_that_never_told_is_unavailable_and_not_asked_all_the_time(
    hands: Clock, problem: UpstreamUnavailable | UpstreamRefused
) -> None:
    near, far = Puppet("near"), Puppet("far", ["a"])
    near.serves = problem
    catalogue = Catalogue([near, far], None)
    for _ in range(3):
        with pytest.raises(UpstreamUnavailable, match=problem.message):
            await catalogue.find("a")
    assert await catalogue.find("far/a") == (far, "a")
    assert await _ids(catalogue) == ["far/a"]
    assert near.asked == 1
    hands.time += 6
    await _ids(catalogue)
    assert near.asked == 2


def test_names_have_to_be_clear() -> None:
    for upstreams, default in [([], None), ([Puppet("a"), Puppet("a")], None), ([Puppet("a")], "b")]:
        with pytest.raises(ValueError, match="upstream"):
            Catalogue(upstreams, default)
