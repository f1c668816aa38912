"""Several runtimes as one, also when one of them does not answer."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from roost.agents.registry import agent_containers
from roost.agents.registry.agent_containers import AgentContainers
from roost.drivers.runtime.contract import Container, RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime


class OtherRuntime(FakeRuntime):
    name: ClassVar[str] = "other"
    hangs = False

    async def list(self) -> Sequence[Container]:
        if self.hangs:
            await asyncio.Event().wait()
        raise RuntimeFailed("no answer")

    async def list_stored(self) -> Collection[str]:
        raise RuntimeFailed("no answer")

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        raise RuntimeFailed("no answer")


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_silent_runtime_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    monkeypatch.setattr(agent_containers, "_ANSWER_SECONDS", 0.2)
    other = OtherRuntime(tmp_path / "other")
    other.hangs = hangs
    containers = AgentContainers([FakeRuntime(tmp_path), other])
    survey = await containers.assignments.survey()
    assert (list(survey.containers), set(survey.silent)) == ([], {"other"})
    assert list(await containers.list()) == []
    assert set(await containers.list_stored()) == set()
    assert await containers.read_memory(["nobody"]) == {}


async def test_without_any_answer_its_error_is_raised(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match="no answer"):
        await AgentContainers([OtherRuntime(tmp_path)]).list()
