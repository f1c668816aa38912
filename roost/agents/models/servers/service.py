"""Model servers on this machine: find them, and let an agent use one.

Nothing is used before an owner chooses it. A choice is a key and an address among the agent's secrets, as for any
provider, and the model in its profile.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from roost.agents.registry.repository import AgentProfiles, find_tenant_id
from roost.agents.setup.secrets.model import SecretKind
from roost.agents.setup.secrets.service import SecretService
from roost.core.db import Connection, Database
from roost.core.problem import AccessDenied, NotFound, ResourceConflict
from roost.drivers.model.contract import ModelSettings, ModelUpstream, UpstreamProblem
from roost.identity.caller import Caller
from roost.identity.tenants import is_operator, is_operator_tenant

ASK_SECONDS = 2.0
"""Time for a server on this machine to list its models."""
MODELS_LIMIT = 100
MODEL_ID = r"[!-~]{1,150}"
"""Form of the ids that are offered; longer and unprintable ones are left out."""
PLACEHOLDER_KEY = "local"
"""Value of the secret that stands for a server's key; these servers ask for none."""
LABELS = {"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp"}


@dataclass(frozen=True)
class ModelServerAddress:
    """A model server's usual address; `provider` is its id in `LABELS` and `agents/setup/secrets/providers.py`."""

    provider: str
    port: int

    @property
    def label(self) -> str:
        return LABELS[self.provider]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def key_name(self) -> str:
        return f"{self.provider.upper()}_API_KEY"

    @property
    def url_name(self) -> str:
        return f"{self.provider.upper()}_BASE_URL"


@dataclass(frozen=True)
class ModelServer:
    """A model server that answered, with the ids of its models."""

    address: ModelServerAddress
    models: Sequence[str]


class ModelServersClosed(AccessDenied):
    """The caller is not the operator, other machines can reach the server, or `model_servers` is `none`."""

    message = (
        "Model servers of this machine are for owners and unlimited keys of the tenant 'default' only, on a server "
        "that no other machine reaches (domain localhost, no TLS) and whose setting model_servers is not none; else "
        "connect one by ROOST_MODEL_URL"
    )


class ModelServerNotFound(NotFound):
    message = "No model server answers there"


class ServerModelNotFound(NotFound):
    message = "The model server does not have this model"


class ModelAddressTaken(ResourceConflict):
    """The tenant's variable with the server's address has another value."""

    message = "The variable for the model server's address has another value"


class ModelServerAccess:
    """Who may reach model servers on this machine: the operator and its agents, on a machine of its own.

    Asking loopback ports for other tenants would show them what runs on the host.
    """

    def __init__(self, db: Database, ports: Mapping[str, int], *, is_personal: bool) -> None:
        """Open `ports` (provider -> port); `is_personal`: only programs of this machine reach the server."""
        self._db = db
        self.addresses: Sequence[ModelServerAddress] = [ModelServerAddress(*one) for one in ports.items()]
        self._is_open = is_personal and bool(ports)

    async def admits(self, caller: Caller) -> bool:
        """Return whether the caller may look for the servers and choose one."""
        return self._is_open and await self._db.read(lambda connection: is_operator(connection, caller))

    async def admits_agent(self, agent_id: str, url: str) -> bool:
        """Return whether the agent may reach `url`: it is the operator's, and `url` is exactly one of the addresses."""
        if not self._is_open or url not in {address.base_url for address in self.addresses}:
            return False

        def read(connection: Connection) -> bool:
            tenant_id = find_tenant_id(connection, agent_id)
            return tenant_id is not None and is_operator_tenant(connection, tenant_id)

        return await self._db.read(read)


@dataclass(frozen=True)
class ModelServerService:
    _access: ModelServerAccess
    _profiles: AgentProfiles
    _secrets: SecretService
    _connect: Callable[[ModelSettings], ModelUpstream]

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
        if not await self._access.admits(caller):
            raise ModelServersClosed
        address = await self._require_model(provider, model)
        secret_ids = await self._ensure_secrets(caller.tenant_id, address)
        attached, _ = await self._secrets.attach(caller.tenant_id, agent_id, secret_ids)
        name = f"{provider}/{model}"  # in the catalogue of an agent that uses it
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
        upstream = self._connect(ModelSettings(address.provider, "openai", address.base_url))
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
