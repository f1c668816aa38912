"""Git repositories of a deployment: one database and one blob store, and servers with folders of their own."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.registry.store import insert_agent
from roost.agents.workspace.git.manifests import RepositoryManifests
from roost.core import clock
from roost.core.db import Database
from roost.drivers.blob.contract import BlobStore
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.git.backing_store import BucketStore
from roost.drivers.git.manifest_contract import ManifestStore
from roost.drivers.git.repositories import SandboxedRepositories
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.identity import tenants


def add_agents(connection: Connection, *agent_ids: str, host: str = "first") -> None:
    tenant, now = tenants.ensure_tenant(connection, "tenant"), clock.utc_now()
    for agent_id in agent_ids:
        profile, state = AgentProfile(agent_id), AgentState.RUNNING
        agent = Agent(agent_id, tenant.id, profile, "fake", "1", state, None, False, host, now, now)
        insert_agent(connection, agent, b"sealed")


@dataclass(frozen=True)
class GitDeployment:
    folder: Path
    db: Database
    blobs: BlobStore

    @classmethod
    def create(cls, folder: Path, db: Database, *agent_ids: str) -> "GitDeployment":
        """Create a deployment whose server `first` has some agents."""
        db.run(lambda connection: add_agents(connection, *agent_ids))
        return cls(folder, db, FolderStore(folder / "blobs"))

    def open_server(
        self, host: str, folder: Path | None = None, manifests: ManifestStore | None = None
    ) -> SandboxedRepositories:
        """Open the repositories of a server, by default in a folder of its own."""
        data, manifests = folder or self.folder / host, manifests or RepositoryManifests(self.db, host)
        open_backing = partial(BucketStore, blobs=self.blobs, manifests=manifests)
        return SandboxedRepositories(data / "git", BwrapSandbox(data, claims=data.parent / "claims"), open_backing)
