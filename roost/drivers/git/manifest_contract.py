"""Contract of the manifests of Git repositories that outlive their server.

A manifest names the packs of a repository, which are objects of the blob store, and its references. It is the
repository; the folder on a server is a cache of it (decision 0061).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class RepositoryState:
    """References of a repository; `pending` is the commit of a recorded push. Generation 0: nothing is stored."""

    generation: int = 0
    main: str | None = None
    pending: str | None = None


@dataclass(frozen=True)
class StoredPack:
    """A pack: its files one after another in the object `key`, whose SHA-256 is `digest`.

    `name` is that of the files; `sizes` are their bytes by the endings of their names, in their order.
    """

    name: str
    key: str
    sizes: Mapping[str, int]
    digest: str

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


@dataclass(frozen=True)
class RepositoryManifest:
    """changed_at: of the last change of the packs. collected_at: of the last collection, or of the creation."""

    state: RepositoryState
    packs: Sequence[StoredPack]
    changed_at: datetime
    collected_at: datetime


class ManifestStore(ABC):
    """Manifests by agent."""

    @abstractmethod
    async def read_state(self, agent_id: str) -> RepositoryState:
        """Read the references with one small read."""

    @abstractmethod
    async def load(self, agent_id: str) -> RepositoryManifest | None:
        """Return a manifest, None if none is stored."""

    @abstractmethod
    async def replace(self, agent_id: str, manifest: RepositoryManifest) -> bool:
        """Replace the manifest of the generation before; return False if there is another one.

        Also if the agent belongs to another server. The objects of packs that no manifest names any more are removed
        later, as are those of which none has ever named. Raises DependencyAway, also after a replacement whose answer
        was lost.
        """

    @abstractmethod
    async def delete(self, agent_id: str) -> None:
        """Remove a manifest. Idempotent."""
