"""Services that both APIs use: settings, database, sealing, background work, addresses, identity, egress."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.agents.registry.repository import find_tenant_id
from roost.agents.workspace.snapshots.model import COMMIT
from roost.app.drivers import open_database
from roost.app.host_identity import load_host_identity
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.events.recorder import EventRecorder
from roost.events.service import EventService
from roost.http.dashboard.static_files import BUILT_FILES, StaticFiles
from roost.http.stack.address import HostAddresses
from roost.http.stack.rate_limits import RateLimits
from roost.identity.api_keys import ApiKeys
from roost.identity.authenticator import Authenticator
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.known_credentials import KnownCredentials
from roost.identity.platform_tokens import PlatformTokens
from roost.identity.rotation_watch import RotationWatch
from roost.identity.sessions.service import BrowserSessions
from roost.identity.sessions.session_authenticator import SessionAuthenticator
from roost.identity.throttle import FailedLoginThrottle
from roost.identity.token_reads import TokenReads
from roost.keyring import load_sealer
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import TransportFactory, transport_factory
from roost.net.policy import EgressPolicy
from roost.net.resolver import SystemResolver
from roost.settings import Settings
from roost.storage.webhooks.model import DELIVER
from roost.work import OperationWorker

UNREPORTED_OPERATIONS = frozenset({DELIVER, COMMIT})
"""Kinds of operations that are no events; a commit follows each snapshot, which is one."""


@dataclass(frozen=True)
class CoreServices:
    settings: Settings
    host: HostIdentity
    addresses: HostAddresses
    dashboard_files: StaticFiles
    metrics: CollectorRegistry
    db: Database
    sealer: Sealer
    operations: OperationWorker
    events: EventService
    api_keys: ApiKeys
    gateway_tokens: GatewayTokens
    rotation_watch: RotationWatch
    token_reads: TokenReads
    platform_tokens: PlatformTokens
    sessions: BrowserSessions
    session_authenticator: SessionAuthenticator
    failed_logins: FailedLoginThrottle
    authenticator: Authenticator
    known_credentials: KnownCredentials
    rate_limits: RateLimits
    resolver: SystemResolver
    dialer: PublicDialer
    transports: TransportFactory

    def close(self) -> None:
        self.resolver.close()
        self.db.close()


def build_core_services(settings: Settings) -> CoreServices:
    """Open the database, migrated, and the deployment's keys. Raises BadSettings."""
    db = open_database(settings)
    EventRecorder(db, find_tenant_id, UNREPORTED_OPERATIONS)
    host = load_host_identity(settings.data)
    sealer = load_sealer(settings, db)
    api_keys, gateway_tokens = ApiKeys(db, sealer), GatewayTokens(db, sealer)
    platform_tokens = PlatformTokens(db, sealer, gateway_tokens)
    failed_logins = FailedLoginThrottle(settings.failed_login_limit)
    addresses = HostAddresses(settings.domain, settings.public_port, settings.public_scheme, settings.agent_ports)
    sessions = BrowserSessions(db, api_keys, failed_logins, addresses.dashboard_url)
    session_authenticator = SessionAuthenticator(sessions, failed_logins)
    resolver = SystemResolver()
    policy = EgressPolicy(
        allow_private=settings.egress_allow,
        deny_hosts=settings.egress_deny_hosts,
        deny_ports=settings.egress_deny_ports,
        hosts=settings.egress_hosts,
    )
    dialer = PublicDialer(policy, resolver)
    return CoreServices(
        settings=settings,
        host=host,
        addresses=addresses,
        dashboard_files=StaticFiles(BUILT_FILES),
        metrics=CollectorRegistry(),
        db=db,
        sealer=sealer,
        operations=OperationWorker(db, owner=host.id),
        events=EventService(db),
        api_keys=api_keys,
        gateway_tokens=gateway_tokens,
        rotation_watch=RotationWatch(db, gateway_tokens),
        token_reads=TokenReads(db, gateway_tokens),
        platform_tokens=platform_tokens,
        sessions=sessions,
        session_authenticator=session_authenticator,
        failed_logins=failed_logins,
        authenticator=Authenticator(api_keys, gateway_tokens, platform_tokens, session_authenticator, failed_logins),
        known_credentials=KnownCredentials(api_keys, gateway_tokens, platform_tokens, sessions),
        rate_limits=_create_rate_limits(settings),
        resolver=resolver,
        dialer=dialer,
        transports=transport_factory(dialer, settings.ca_file),
    )


def _create_rate_limits(settings: Settings) -> RateLimits:
    return RateLimits(
        caller_requests=settings.rate_limit,
        caller_bytes=settings.rate_limit_bytes,
        host_requests=settings.host_rate_limit,
        host_bytes=settings.host_rate_limit_bytes,
        limits_loopback=settings.rate_limit_loopback,
    )
