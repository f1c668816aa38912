"""The environment that an agent's programs get from its secrets, and the values that its logs mask."""

from collections.abc import Mapping, Sequence

from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import GatewayEnvironment, SecretKind, UnreadableSecret
from roost.agents.setup.secrets.sealed_secrets import SealedSecrets
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive


class SecretEnvironment:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._sealed = SealedSecrets(sealer)

    async def get_environment(self, agent_id: str) -> GatewayEnvironment:
        """Return the environment for a gateway that starts now. Raises UnreadableSecret."""
        rows = [row for row in await self._rows(agent_id) if model.reaches_agent(row.secret.name)]
        return GatewayEnvironment(
            values={row.secret.name: self._sealed.open(row) for row in rows},
            versions={row.secret.id: row.secret.version for row in rows},
        )

    async def get_values(self, agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the values for a single command. Raises UnreadableSecret."""
        return (await self.get_environment(agent_id)).values

    async def mark_synced(self, agent_id: str, environment: GatewayEnvironment) -> None:
        """Record that the agent's gateway has started with this environment."""
        if environment.versions:
            await self._db.write(
                lambda connection: store.set_synced_versions(connection, agent_id, environment.versions)
            )

    async def get_private_values(self, agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the secrets by name that the agent's logs mask and its snapshots leave out; variables are none."""
        found: dict[str, Sensitive[str]] = {}
        for row in await self._rows(agent_id):
            if row.secret.kind is SecretKind.SECRET:
                try:
                    found[row.secret.name] = self._sealed.open(row)
                except UnreadableSecret:  # logged already, and no process can have printed it
                    continue
        return found

    async def _rows(self, agent_id: str) -> Sequence[store.SecretRow]:
        return await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
