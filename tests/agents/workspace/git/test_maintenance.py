"""When a repository is collected, and with which commits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.agents.workspace.git.maintenance import RepositoryMaintenance
from roost.core import clock
from roost.drivers.git.contract import GitFailed, RepositoryUsage

NOW = datetime(2026, 5, 1, tzinfo=UTC)
GIB = 1024**3


@dataclass
class FakeRepositories:
    """Repositories whose usage is given, and one that fails."""

    usage: dict[str, RepositoryUsage]
    collected: dict[str, tuple[Sequence[str], datetime]] = field(default_factory=dict[str, Any])

    async def list(self) -> list[Any]:
        return [SimpleNamespace(id=agent_id) for agent_id in ["broken", "none", *self.usage]]

    async def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        return self.usage.get(agent_id)

    async def collect_garbage(self, agent_id: str, kept: Sequence[str], unreachable_before: datetime) -> bool:
        if agent_id == "broken":
            raise GitFailed
        self.collected[agent_id] = kept, unreachable_before
        return True


async def list_commits(agent_id: str) -> Sequence[str]:
    return [f"of {agent_id}"]


def usage(size: int, changed: float, collected: float) -> RepositoryUsage:
    """Return a usage; times are in days before now."""
    return RepositoryUsage(size, NOW - timedelta(days=changed), NOW - timedelta(days=collected))


async def test_changed_repositories_are_collected_weekly_and_large_ones_daily(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)
    repositories = FakeRepositories(
        {
            "broken": usage(1, 0, 30),
            "due": usage(1, 0.1, 7),
            "young": usage(3 * GIB, 0.1, 6.9),
            "unchanged": usage(8 * GIB, 8, 8),
            "large": usage(4 * GIB, 0.1, 1),
            "large and young": usage(8 * GIB, 0.1, 0.9),
        }
    )
    given = cast("Any", repositories)
    await RepositoryMaintenance(given, given, list_commits).collect_due()
    expected = {name: ([f"of {name}"], NOW - timedelta(days=7)) for name in ("due", "large")}
    assert repositories.collected == expected
