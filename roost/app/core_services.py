"""Services that both APIs use: settings, database, sealing, background work, addresses, identity, egress."""

from dataclasses import dataclass

from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.agents.registry.agent_ports import AgentPorts
from roost.agents.registry.repository import find_tenant_id
from roost.agents.workspace.snapshots.model import COMMIT
from roost.app.data_folder import load_host_identity
from roost.app.drivers import open_database
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.domain_names.service import DomainMirror
from roost.events.recorder import EventRecorder
from roost.http.stack.address import HostAddresses
from roost.identity.api_keys import ApiKeys
from roost.identity.authenticator import Authenticator
from roost.identity.gateway_tokens import GatewayTokens, RotationWatch, TokenReads
from roost.identity.known_credentials import KnownCredentials
from roost.identity.platform_tokens import PlatformTokens
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle
from roost.keyring import load_sealer
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import TransportFactory, transport_factory
from roost.net.policy import EgressPolicy
from roost.net.resolver import SystemResolver
from roost.settings import Settings
from roost.storage.webhooks.model import DELIVER
from roost.web.service_registry import ServiceGroup
from roost.work import OperationWorker

UNREPORTED_OPERATIONS = frozenset({DELIVER, COMMIT})
"""Kinds of operations that are no events; a commit follows each snapshot, which is one."""


@dataclass(frozen=True)
class SessionServices(ServiceGroup):
    sessions: BrowserSessions
    failed_logins: FailedLoginThrottle


@dataclass(frozen=True)
class IdentityServices(ServiceGroup):
    api_keys: ApiKeys
    gateway_tokens: GatewayTokens
    platform_tokens: PlatformTokens
    token_reads: TokenReads
    rotation_watch: RotationWatch
    sessions: SessionServices
    authenticator: Authenticator
    known_credentials: KnownCredentials


@dataclass(frozen=True)
class NetworkAccess(ServiceGroup):
    """The registered names that lead to this server, and its way to others."""

    domains: DomainMirror
    resolver: SystemResolver
    dialer: PublicDialer
    transports: TransportFactory


@dataclass(frozen=True)
class CoreServices(ServiceGroup):
    settings: Settings
    host: HostIdentity
    addresses: HostAddresses
    db: Database
    sealer: Sealer
    operations: OperationWorker
    identity: IdentityServices
    network: NetworkAccess

    def close(self) -> None:
        self.network.resolver.close()
        self.db.close()


def build_core_services(settings: Settings) -> CoreServices:
    """Open the database, migrated, and the deployment's keys. Raises BadSettings."""
    db = open_database(settings)
    EventRecorder(db, find_tenant_id, UNREPORTED_OPERATIONS)
    host, sealer, network = load_host_identity(settings.data), load_sealer(settings, db), _build_network(settings, db)
    ports = None if settings.agent_ports is None else AgentPorts(db, host.id, settings.agent_ports)
    addresses = HostAddresses(
        settings.domain,
        settings.public_port,
        settings.public_scheme,
        ports,
        domains=network.domains,
        peer_address=settings.peer_address,
    )
    return CoreServices(
        settings=settings,
        host=host,
        addresses=addresses,
        db=db,
        sealer=sealer,
        operations=OperationWorker(db, owner=host.id),
        identity=_build_identity(settings, db, sealer, addresses.dashboard_url),
        network=network,
    )


def _build_network(settings: Settings, db: Database) -> NetworkAccess:
    policy = EgressPolicy(
        allow_private=settings.egress_allow,
        deny_hosts=settings.egress_deny_hosts,
        deny_ports=settings.egress_deny_ports,
        hosts=settings.egress_hosts,
    )
    resolver = SystemResolver()
    dialer = PublicDialer(policy, resolver)
    return NetworkAccess(DomainMirror(db), resolver, dialer, transport_factory(dialer, settings.ca_file))


def _build_identity(settings: Settings, db: Database, sealer: Sealer, dashboard_url: str) -> IdentityServices:
    keys, tokens = ApiKeys(db, sealer), GatewayTokens(db, sealer)
    platform, failed_logins = PlatformTokens(db, sealer, tokens), FailedLoginThrottle(settings.failed_login_limit)
    sessions = BrowserSessions(db, keys, failed_logins, dashboard_url)
    return IdentityServices(
        api_keys=keys,
        gateway_tokens=tokens,
        platform_tokens=platform,
        token_reads=TokenReads(db, tokens),
        rotation_watch=RotationWatch(db, tokens),
        sessions=SessionServices(sessions, failed_logins),
        authenticator=Authenticator(keys, tokens, platform, sessions, failed_logins),
        known_credentials=KnownCredentials(keys, tokens, platform, sessions),
    )
