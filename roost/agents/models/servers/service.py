"""Model servers on this machine: find them, and let an agent use one.

Nothing is used before an owner chooses it. A choice is a key and an address among the agent's secrets, as for any
provider, and the model in its profile.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from roost.agents.models.servers.access import ModelServerAccess
from roost.agents.models.servers.errors import ModelAddressTaken, ModelServerNotFound, ServerModelNotFound
from roost.agents.models.servers.model import (
    ASK_SECONDS,
    MODEL_ID,
    MODELS_LIMIT,
    PLACEHOLDER_KEY,
    ModelServer,
    ModelServerAddress,
)
from roost.agents.registry.repository import AgentProfiles
from roost.agents.setup.secrets.model import SecretKind
from roost.agents.setup.secrets.service import SecretService
from roost.drivers.model.contract import ModelSettings, ModelUpstream, UpstreamProblem
from roost.identity.caller import Caller


class ModelServerService:
    def __init__(
        self,
        access: ModelServerAccess,
        profiles: AgentProfiles,
        secrets: SecretService,
        connect: Callable[[ModelSettings], ModelUpstream],
    ) -> None:
        self._access = access
        self._profiles = profiles
        self._secrets = secrets
        self._connect = connect

    async def find(self, caller: Caller) -> Sequence[ModelServer] | None:
        """Return the servers that answer within two seconds; None if the caller may not look for them."""
        if not await self._access.admits(caller):
            return None
        answers = await asyncio.gather(*map(self._ask, self._access.addresses))
        return [answer for answer in answers if answer is not None]

    async def use(self, caller: Caller, agent_id: str, provider: str, model: str) -> str:
        """Make a server's model the agent's, restart a gateway that runs, and return the model's name.

        Raises ModelServersClosed, ModelServerNotFound, ServerModelNotFound, ModelAddressTaken, AgentNotFound, and the
        errors of secrets and of a restart.
        """
        await self._access.require(caller)
        address = await self._require_model(provider, model)
        secret_ids = await self._ensure_secrets(caller.tenant_id, address)
        attached, _ = await self._secrets.attach(caller.tenant_id, agent_id, secret_ids)
        name = address.model_name(model)
        await self._profiles.update(agent_id, lambda profile: replace(profile, model=name), restart=bool(attached))
        return name

    async def _require_model(self, provider: str, model: str) -> ModelServerAddress:
        address = next((one for one in self._access.addresses if one.provider == provider), None)
        if address is None:
            raise ModelServerNotFound(f"No model server is looked for as {provider}")
        server = await self._ask(address)
        if server is None:
            raise ModelServerNotFound(f"{address.label} does not answer at {address.base_url}")
        if model not in server.models:
            raise ServerModelNotFound(f"{address.label} does not have the model {model}")
        return address

    async def _ask(self, address: ModelServerAddress) -> ModelServer | None:
        """Ask for the list of models; None if no model server answers. The driver limits the answer's size."""
        upstream = self._connect(address.settings)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                models = await upstream.list_models()
        except (UpstreamProblem, TimeoutError):
            return None
        finally:
            await upstream.close()
        return ModelServer(address, [model for model in models if re.fullmatch(MODEL_ID, model)][:MODELS_LIMIT])

    async def _ensure_secrets(self, tenant_id: str, address: ModelServerAddress) -> Sequence[str]:
        """Return the ids of the key and the address among the tenant's secrets; create missing ones."""
        known = {one.secret.name: one for one in (await self._secrets.list(tenant_id))[0]}
        if (found := known.get(address.url_name)) is None:
            created = await self._secrets.create(tenant_id, address.url_name, address.base_url, SecretKind.VARIABLE)
            url_id = created.id
        elif found.value is not None and found.value.reveal() == address.base_url:
            url_id = found.secret.id
        else:
            raise ModelAddressTaken(
                f"{address.url_name} has another value. Change it to {address.base_url}, or delete it"
            )
        if (key := known.get(address.key_name)) is not None:
            return [key.secret.id, url_id]
        made = await self._secrets.create(tenant_id, address.key_name, PLACEHOLDER_KEY, SecretKind.SECRET)
        return [made.id, url_id]
