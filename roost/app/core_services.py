"""Services that both APIs use: settings, database, sealing, background work, addresses, identity, egress."""

import socket

from prometheus_client import CollectorRegistry

from roost.app.drivers import open_database
from roost.config import Settings
from roost.hosts.address import HostAddresses
from roost.identity.api_keys import ApiKeys
from roost.identity.authenticator import Authenticator
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens
from roost.keyring import load_sealer
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import transport_factory
from roost.net.policy import EgressPolicy
from roost.net.resolver import SystemResolver
from roost.web.service_registry import ServiceRegistry
from roost.work import OperationWorker


class CoreServices:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.addresses = HostAddresses(settings.domain, settings.public_port, settings.public_scheme)
        self.registry = CollectorRegistry()
        self.services = ServiceRegistry()
        self.db = open_database(settings)
        self.sealer = load_sealer(settings, self.db)
        self.queue = OperationWorker(self.db, owner=f"{socket.gethostname()}:{settings.data}"[-100:])
        self.keys, self.gateways = ApiKeys(self.db, self.sealer), GatewayTokens(self.db, self.sealer)
        self.platform = PlatformTokens(self.db, self.sealer, self.gateways)
        self.authenticator = Authenticator(self.keys, self.gateways, self.platform)
        self.resolver = SystemResolver()
        policy = EgressPolicy(
            allow_private=settings.egress_allow,
            deny_hosts=settings.egress_deny_hosts,
            hosts=settings.egress_hosts,
        )
        self.dialer = PublicDialer(policy, self.resolver)
        self.transports = transport_factory(self.dialer, settings.ca_file)
        for service in (self.authenticator, self.keys, self.gateways):
            self.services.add(service)

    def close(self) -> None:
        self.resolver.close()
        self.db.close()
