"""What the server connects to for agents: the dialer of their requests, and their own model providers."""

from collections.abc import Sequence
from dataclasses import replace

from roost.agents.models.gateway import providers
from roost.agents.models.gateway.model import AgentProviders
from roost.agents.models.servers.access import ModelServerAccess
from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.agents.network.egress.proxy import EgressProxy
from roost.agents.setup.secrets.provider_keys import ProviderKeys
from roost.app.core_services import CoreServices
from roost.app.drivers import create_upstream
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import TransportFactory
from roost.net.policy import EgressPolicy


def agent_dialer(core: CoreServices) -> AgentDialer:
    """Return the dialer of what the server connects to for agents; it logs each request."""
    return AgentDialer(_agent_policy(core), core.resolver)


def agent_proxy(core: CoreServices) -> EgressProxy:
    """Return the proxy for programs of agents, which logs each connection."""
    return EgressProxy(PublicDialer(_agent_policy(core), core.resolver))


def agent_providers(stored: ProviderKeys, transports: TransportFactory, servers: ModelServerAccess) -> AgentProviders:
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


def _agent_policy(core: CoreServices) -> EgressPolicy:
    """Return the rules for agents, whom an operator can limit to a list of hosts, unlike the server's own requests."""
    return replace(core.dialer.policy, allow_hosts=core.settings.egress_allow_hosts or None)
