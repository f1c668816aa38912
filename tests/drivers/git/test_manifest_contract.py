"""Manifests whose replacement got no answer, because the database was away for a moment or longer."""

from pathlib import Path
from typing import Any

import pytest

from roost.drivers.git import backing_store
from roost.drivers.git.contract import GitUnavailable
from tests.conformance.git_objects import commit_tree, push_of
from tests.conformance.git_pushes import MAIN, Handler, push, tree_of, work
from tests.conformance.test_git import AGENT, commit, file
from tests.drivers.git.failing_server import FailingServer
from tests.drivers.git.test_backing_store import deployment, give_agent
from tests.support.git_deployment import GitDeployment

pytestmark = pytest.mark.container
__all__ = ["deployment", "work"]


@pytest.mark.parametrize("step", ["away before", "away after"])
@pytest.mark.parametrize("stage", ["on_check", "on_apply"])
async def test_a_push_whose_database_was_away_for_a_moment_succeeds(
    deployment: GitDeployment, work: Path, monkeypatch: pytest.MonkeyPatch, stage: str, step: str
) -> None:
    server = FailingServer(deployment)
    repositories = server.open()
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    failing: dict[str, Any] = {stage: lambda *_: server.fail(step, monkeypatch)}
    assert f"ok {MAIN}" in await push(repositories, push_of(work, new, base), Handler(**failing))
    for again in (repositories, deployment.open_server("first", deployment.folder / "new")):
        assert await again.head(AGENT) == new
        assert await again.find_unfinished_push(AGENT) is None


async def test_a_push_whose_record_is_unknown_says_so(
    deployment: GitDeployment, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backing_store, "_OUTCOME_SECONDS", 0.0)
    server = FailingServer(deployment)
    repositories = server.open()
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    handler = Handler(on_check=lambda _: server.fail("away", monkeypatch))
    assert "it may be applied later" in await push(repositories, push_of(work, new, base), handler)
    assert "apply" not in handler.calls
    server.fail("", monkeypatch)
    assert await repositories.head(AGENT) == base
    assert await repositories.find_unfinished_push(AGENT) is None
    assert f"ok {MAIN}" in await push(repositories, push_of(work, new, base))


@pytest.mark.parametrize("step", ["away before", "away after"])
async def test_a_lost_answer_is_not_taken_for_the_change_of_another_server(
    deployment: GitDeployment, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    server = FailingServer(deployment)
    repositories = server.open()
    base = await commit(repositories, None, file("a"))
    server.fail(step, monkeypatch)
    made = await commit(repositories, base, file("b"))
    assert await deployment.open_server("first", deployment.folder / "new").head(AGENT) == made
    server.fail("away before", monkeypatch)
    await give_agent(deployment, "second")
    with pytest.raises(GitUnavailable, match="Another server"):
        await commit(repositories, made, file("c"))
