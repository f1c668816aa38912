"""Contract of registries of skills on other servers. Their answers are hostile: bounded, and checked by the caller."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

ARCHIVE_LIMIT = 12 * 1024**2
"""Maximum bytes of a downloaded archive."""
RESULTS_LIMIT = 50


class RegistryUnavailable(Exception):  # noqa: N818 - a state of the other side
    """The registry does not answer in time, or not as a registry does; the message is for the log."""


@dataclass(frozen=True)
class FoundSkill:
    """A skill of a registry; texts are sanitized. owner: None where the registry has none."""

    slug: str
    owner: str | None
    name: str
    description: str
    version: str | None
    updated_at: datetime


class SkillRegistry(Protocol):
    """One registry. Every method ends within seconds and raises RegistryUnavailable on failure."""

    @property
    def url(self) -> str:
        """Return the address, which names the registry to users."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[FoundSkill]:
        """Return skills that fit a query, best first; without a query the newest."""
        ...

    async def find(self, slug: str, owner: str | None) -> FoundSkill | None:
        """Return a skill with its newest version; None if the registry does not have it."""
        ...

    async def download(self, slug: str, owner: str | None, version: str) -> bytes | None:
        """Return the zip archive of a version; None if the registry does not have it."""
        ...
