"""What the server connects to for agents: the dialer of their requests, and the model gateway."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roost.agents.models.gateway import providers
from roost.agents.models.gateway.model import AgentProviders, ModelTimeouts
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.servers.access import ModelServerAccess
from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.agents.network.egress.proxy import EgressProxy
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.secrets.provider_keys import ProviderKeys
from roost.agents.setup.secrets.service import SecretService
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_upstream
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import TransportFactory, transport_factory
from roost.net.policy import EgressPolicy


@dataclass(frozen=True)
class ModelAccess:
    """The model gateway of agents, and the keys and servers that it uses."""

    gateway: ModelGateway
    keys: ProviderKeys
    providers: AgentProviders
    servers: ModelServerAccess


def agent_dialer(core: CoreServices) -> AgentDialer:
    """Return the dialer of what the server connects to for agents; it logs each request."""
    return AgentDialer(_agent_policy(core), core.resolver)


def agent_proxy(core: CoreServices) -> EgressProxy:
    """Return the proxy for programs of agents, which logs each connection."""
    return EgressProxy(PublicDialer(_agent_policy(core), core.resolver))


def _agent_providers(stored: ProviderKeys, transports: TransportFactory, servers: ModelServerAccess) -> AgentProviders:
    """Return the model providers whose keys agents have, reached within the egress rules of agents.

    Beyond those, `servers` admits the operator's agents to model servers on this machine.
    """

    async def settings(agent_id: str) -> Sequence[ModelSettings]:
        keys = await stored.list(agent_id)
        found = (providers.model_settings(key.provider, key.name, key.value, key.base_url) for key in keys)
        return [
            replace(one, is_local=await servers.admits_agent(agent_id, one.url)) for one in found if one is not None
        ]

    def connect(agent_id: str, settings: ModelSettings) -> ModelUpstream:
        return create_upstream(settings, None if settings.is_local else transports(agent_id))

    return AgentProviders(settings, connect)


def build_model_access(
    core: CoreServices, drivers: Drivers, repository: AgentRepository, secrets: SecretService, dialer: AgentDialer
) -> ModelAccess:
    """Build the gateway, which knows of each change of an agent's keys."""
    settings = core.settings
    is_personal = settings.is_local and not settings.tls and settings.domain == "localhost"
    servers = ModelServerAccess(core.db, settings.model_servers, is_personal=is_personal)
    keys = ProviderKeys(core.db, core.sealer, repository, secrets)
    providers = _agent_providers(keys, transport_factory(dialer, settings.ca_file), servers)
    gateway = ModelGateway(
        core.db,
        drivers.upstreams,
        providers=providers,
        timeouts=ModelTimeouts(settings.model_timeout, settings.model_idle_timeout),
        record_use=repository.last_uses.record,
    )
    secrets.subscribe(gateway.refresh_agent)
    return ModelAccess(gateway, keys, providers, servers)


def _agent_policy(core: CoreServices) -> EgressPolicy:
    """Return the rules for agents, whom an operator can limit to a list of hosts, unlike the server's own requests."""
    return replace(core.dialer.policy, allow_hosts=core.settings.egress_allow_hosts or None)
