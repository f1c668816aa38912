"""What the server connects to for agents: the dialer of their requests, and their model providers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roost.agents.models.gateway import providers
from roost.agents.models.gateway.model import AgentProviders
from roost.agents.models.keys.service import ModelKeyTrial
from roost.agents.models.servers.service import ModelServerAccess
from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.agents.network.egress.proxy import EgressProxy
from roost.agents.setup.secrets.provider_keys import ProviderKeys
from roost.app.core_services import CoreServices
from roost.app.drivers import create_upstream
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import transport_factory
from roost.net.policy import EgressPolicy


@dataclass(frozen=True)
class ModelAccess:
    """The model providers whose keys agents have, the trial of new keys, and model servers on this machine."""

    providers: AgentProviders
    trial: ModelKeyTrial
    servers: ModelServerAccess


def agent_dialer(core: CoreServices) -> AgentDialer:
    """Return the dialer of what the server connects to for agents; it logs each request."""
    return AgentDialer(_agent_policy(core), core.network.resolver)


def agent_proxy(core: CoreServices) -> EgressProxy:
    """Return the proxy for programs of agents, which logs each connection."""
    return EgressProxy(PublicDialer(_agent_policy(core), core.network.resolver))


def build_model_access(core: CoreServices, dialer: AgentDialer) -> ModelAccess:
    """Build the providers, reached within the egress rules of agents; beyond those, operators' agents reach servers."""
    settings, keys = core.settings, ProviderKeys(core.db, core.sealer)
    is_personal = settings.is_local and not settings.tls and settings.domain == "localhost"
    servers = ModelServerAccess(core.db, settings.model_servers, is_personal=is_personal)
    transports = transport_factory(dialer, settings.ca_file)

    async def load_settings(agent_id: str) -> Sequence[ModelSettings]:
        stored = await keys.list(agent_id)
        found = (providers.model_settings(key.provider, key.name, key.value, key.base_url) for key in stored)
        return [
            replace(one, is_local=await servers.admits_agent(agent_id, one.url)) for one in found if one is not None
        ]

    def connect(agent_id: str, settings: ModelSettings) -> ModelUpstream:
        return create_upstream(settings, None if settings.is_local else transports(agent_id))

    agent_providers = AgentProviders(load_settings, connect)
    return ModelAccess(agent_providers, ModelKeyTrial(keys, agent_providers), servers)


def _agent_policy(core: CoreServices) -> EgressPolicy:
    """Return the rules for agents, whom an operator can limit to a list of hosts, unlike the server's own requests."""
    return replace(core.network.dialer.policy, allow_hosts=core.settings.egress_allow_hosts or None)
