"""Manifests of the repositories of a host's agents. Their packs are content, which counts for the tenant.

So the sweep of content removes the packs that no manifest names, and those of which a crash prevented the manifest.
"""

from sqlalchemy import Connection

from roost.agents.registry.repository import find_agent
from roost.agents.workspace.git import store
from roost.core import clock
from roost.core.db import Database
from roost.drivers.git.manifest_contract import ManifestStore, RepositoryManifest, RepositoryState
from roost.identity import tenants
from roost.storage.content.model import InternalNetwork, Pack
from roost.storage.content.service import add_pack, hold_packs, known_packs, release_packs

_HOLDER = "agent-git/"

has_manifests = store.has_manifests


class RepositoryManifests(ManifestStore):
    def __init__(self, db: Database, host_id: str) -> None:
        self._db = db
        self._host_id = host_id

    async def read_state(self, agent_id: str) -> RepositoryState:
        return await self._db.read(lambda connection: store.get_state(connection, agent_id)) or RepositoryState()

    async def load(self, agent_id: str) -> RepositoryManifest | None:
        return await self._db.read(lambda connection: store.get_manifest(connection, agent_id))

    async def replace(self, agent_id: str, manifest: RepositoryManifest) -> bool:
        def replace(connection: Connection) -> bool:
            agent = find_agent(connection, agent_id)
            if agent is None or agent.host_id != self._host_id:
                return False
            tenants.lock_tenant(connection, agent.tenant_id)
            if not store.replace_manifest(connection, agent_id, manifest):
                return False
            sizes = {pack.key: pack.size for pack in manifest.packs}
            for key in sizes.keys() - known_packs(connection, list(sizes)):
                add_pack(connection, Pack(key, sizes[key], clock.utc_now()), (), ())
            hold_packs(connection, _HOLDER + agent_id, agent.tenant_id, InternalNetwork.GIT, sizes)
            return True

        return await self._db.write(replace)

    async def delete(self, agent_id: str) -> None:
        def delete(connection: Connection) -> None:
            store.delete_manifest(connection, agent_id)
            release_packs(connection, _HOLDER + agent_id)

        await self._db.write(delete)
