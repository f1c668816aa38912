"""Authentication of requests: turns a credential into a Caller (decision 0008).

A credential comes from `Authorization: Bearer`, otherwise `?token=`, otherwise the cookie `gw_token`; the first one
counts. Only gateway tokens count outside the header (contract, Authentication 1 and 2). The accepted kinds depend on
the host: service JWTs and platform tokens on the management address, gateway tokens on the agent's own address, all on
`localhost`. An agent's relay socket needs none, because the socket identifies the agent; it accepts a platform token,
too. The type in a handler's signature states the required caller. From then on, changes of the request's
task are those of its caller (`core/actor.py`).
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Path
from starlette.requests import HTTPConnection

from roost.core.actor import current_actor
from roost.core.problem import NotFound
from roost.core.right import Right
from roost.identity.api_keys import ApiKeys
from roost.identity.auth_request import AuthRequest, auth_request_of, check_same_origin, session_cookie_pair
from roost.identity.caller import Caller, CallerKind
from roost.identity.credentials import (
    Credential,
    CredentialSource,
    find_credential,
    find_key_pair,
    find_password,
    is_gateway_token,
)
from roost.identity.errors import (
    BasicUnauthorised,
    MissingBasicCredential,
    MissingCredential,
    PermissionDenied,
    Unauthorised,
)
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens, is_platform
from roost.identity.rights import check_right
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle
from roost.web.service_registry import provide_service
from roost.web.url_rule import HostKind, UrlFamily

ANY_SCOPE = "any scope"
_GATEWAY_BOUND = frozenset({CallerKind.GATEWAY, CallerKind.PLATFORM})
_STORAGE_HOSTS = frozenset({HostKind.STORAGE, HostKind.STORAGE_GATEWAY})
_PLATFORM_HOSTS = frozenset({HostKind.MANAGEMENT, HostKind.STORAGE, HostKind.LOCAL})

CallerKinds = frozenset[CallerKind]
SERVICE: CallerKinds = frozenset({CallerKind.SERVICE})
AGENT: CallerKinds = SERVICE | {CallerKind.GATEWAY}
MODEL: CallerKinds = AGENT | {CallerKind.RELAY}


@dataclass(frozen=True)
class Authenticator:
    _keys: ApiKeys
    _gateways: GatewayTokens
    _platform: PlatformTokens
    _sessions: BrowserSessions
    _throttle: FailedLoginThrottle

    async def identify_caller(self, request: AuthRequest, family: UrlFamily) -> Caller:
        """Authenticate by any credential of that API, before a body is read; the request's handler counts the use.

        A request for no operation needs no right: the router answers it with 404 or 405.
        """
        request = replace(request, counts_use=False, right=request.right or Right.NONE)
        if family is UrlFamily.STORAGE:
            return await self.authenticate_storage(request, ANY_SCOPE, admits_agents=True)
        if family is UrlFamily.GIT:
            return await self.authenticate_git(request, request.host.agent_id)
        caller = await self.authenticate_any(request)
        return check_right(caller, request.right, request.scope) if caller.kind is CallerKind.SERVICE else caller

    async def authenticate_any(self, request: AuthRequest) -> Caller:
        """Authenticate by any credential that the host accepts, whatever its rights."""
        if request.host.kind is HostKind.RELAY:
            return await self._authenticate_relay(request)
        if request.host.kind is HostKind.AGENT:
            return await self.authenticate_gateway_token(request)
        if (caller := await self._sessions.find_caller(request)) is not None:
            return caller
        credential = self._credential(request)
        if request.host.kind in _STORAGE_HOSTS:
            raise self._rejection(request)
        if request.host.kind is HostKind.LOCAL and is_gateway_token(credential):
            return await self._authenticate_gateway(request, credential)
        return await self._authenticate_jwt(request, credential)

    async def authenticate_storage(self, request: AuthRequest, scope: str, *, admits_agents: bool = False) -> Caller:
        """Authenticate a service JWT with a scope (`org:files:read`) on the storage API; write includes read.

        `admits_agents`: also an agent from its container or with its platform token. Raises PermissionDenied.
        """
        if admits_agents and (agent := await self._find_agent_itself(request)) is not None:
            is_early = scope == ANY_SCOPE  # whether the handler accepts agents is not known yet
            return _act_as(agent if is_early else check_right(agent, request.right, request.scope))
        if (caller := await self._sessions.find_caller(request)) is None:
            try:
                caller = await self._verify_storage_credential(request)
            except Unauthorised as error:
                raise self._rejection(request) from error
        check_right(caller, request.right, None)
        wider = scope.removesuffix(":read") + ":write"
        if scope != ANY_SCOPE and not caller.allows(scope) and not caller.allows(wider):
            raise PermissionDenied(f"Permission denied: the key needs the scope {scope}")
        return _act_as(caller)

    async def _verify_storage_credential(self, request: AuthRequest) -> Caller:
        """Return the caller of a JWT, or of a key's handle and secret in the headers of old clients."""
        pair, credential = find_key_pair(request.headers), find_credential(request.headers, request.query)
        if pair is None and credential is None:
            raise MissingCredential
        if request.host.kind not in {HostKind.STORAGE, HostKind.LOCAL}:
            raise Unauthorised
        if pair is not None:
            return await self._keys.verify_pair(*pair, counts_use=request.counts_use)
        if credential is None or credential.source is not CredentialSource.HEADER:
            raise Unauthorised
        return await self._keys.verify(credential.token, counts_use=request.counts_use)

    async def _find_agent_itself(self, request: AuthRequest) -> Caller | None:
        """Return the agent whose relay socket or platform token it is; None with another credential."""
        if request.host.kind is HostKind.RELAY:
            return await self._authenticate_relay(request)
        credential = find_credential(request.headers, "")
        if credential is None or request.host.kind not in _PLATFORM_HOSTS or not is_platform(credential.token):
            return None
        return await self._authenticate_jwt(request, credential)

    async def authenticate(self, request: AuthRequest, kinds: CallerKinds, agent_id: str | None = None) -> Caller:
        """Authenticate a caller of one of these kinds, with access to the agent in the path.

        Raises UnknownAgent if a service JWT names an unknown agent, Unauthorised for an agent of another tenant,
        PermissionDenied for a platform token, NotFound for a relay at a path that does not accept relays.
        """
        caller = await self.authenticate_any(request)
        if caller.kind in kinds:
            check_right(caller, request.right, request.scope)
            await self._check_agent_access(caller, agent_id, request)
            return _act_as(caller)
        if caller.kind is CallerKind.RELAY:
            raise NotFound
        raise PermissionDenied if caller.kind is CallerKind.PLATFORM else self._rejection(request)

    async def authenticate_model(self, request: AuthRequest) -> Caller:
        """Authenticate access to the model gateway: an agent by relay or token, a tenant by JWT."""
        if request.host.kind is HostKind.RELAY:  # engines send a placeholder as their key
            return check_right(await self._relay_caller(request), request.right, request.scope)
        return await self.authenticate(request, MODEL)

    def recall_gateway_token(self, request: AuthRequest) -> Caller | None:
        """Return the caller if the gateway token of the agent at this address was verified a moment ago. No I/O."""
        credential = find_credential(request.headers, request.query)
        if credential is None or credential.source is CredentialSource.COOKIE:  # it counts on the agent's own pages
            return None
        caller = self._gateways.recall(credential.token)
        return caller if caller is not None and caller.agent_id == request.host.agent_id else None

    async def authenticate_gateway_token(self, request: AuthRequest) -> Caller:
        """Authenticate the gateway token of the agent at this address."""
        caller = await self._authenticate_gateway(request, self._credential(request))
        if caller.agent_id != request.host.agent_id:
            raise self._rejection(request)
        return caller

    async def authenticate_git(self, request: AuthRequest, agent_id: str | None) -> Caller:
        """Authenticate a gateway token (of this agent) in the password of HTTP Basic (contract, Authentication 3)."""
        password = find_password(request.headers)
        if password is None:
            raise MissingBasicCredential
        try:
            caller = await self._gateways.verify(password)
        except Unauthorised as error:
            self._rejection(request)  # only counts the failure: Git asks for a password at another challenge
            raise BasicUnauthorised from error
        if not {agent_id, request.host.agent_id} <= {caller.agent_id, None}:
            self._rejection(request)
            raise BasicUnauthorised
        return _act_as(check_right(caller, request.right, request.scope))

    @asynccontextmanager
    async def hold_authorization(self, caller: Caller) -> AsyncGenerator[Caller, None]:
        """Cancel the block when the gateway token behind the caller's credential changes."""
        if caller.kind not in _GATEWAY_BOUND or caller.agent_id is None:
            yield caller
            return
        async with self._gateways.hold_open(caller.agent_id):
            yield caller

    @asynccontextmanager
    async def authorize_visit(self, request: AuthRequest, agent_id: str | None) -> AsyncGenerator[Caller, None]:
        """Authenticate access to an agent, or by JWT, for a stream, which ends when the credential becomes invalid."""
        caller = await self.authenticate(request, AGENT if agent_id else SERVICE, agent_id)
        async with self._hold_stream(caller):
            yield caller

    def _hold_stream(self, caller: Caller) -> AbstractAsyncContextManager[object]:
        """Cancel the block within a second after the caller's credential becomes invalid."""
        if caller.session_digest is not None:
            return self._sessions.hold_open(caller.session_digest)
        if caller.key_id is not None:
            return self._keys.hold_open(caller.key_id)
        if caller.kind is CallerKind.GATEWAY and caller.agent_id is not None:
            return self._gateways.hold_open(caller.agent_id, caller.token_digest)
        return self.hold_authorization(caller)

    async def _check_agent_access(self, caller: Caller, agent_id: str | None, request: AuthRequest) -> None:
        if agent_id is None or caller.agent_id == agent_id:
            return
        if caller.kind is CallerKind.SERVICE:
            if await self._gateways.get_tenant_id(agent_id) != caller.tenant_id:
                raise self._rejection(request)
        elif caller.kind is CallerKind.GATEWAY:
            raise self._rejection(request)
        else:
            raise PermissionDenied if caller.kind is CallerKind.PLATFORM else NotFound

    async def _authenticate_relay(self, request: AuthRequest) -> Caller:
        """Authenticate by the socket, or by a platform token of the same agent."""
        credential = find_credential(request.headers, "")
        if credential is None or credential.source is CredentialSource.COOKIE or not is_platform(credential.token):
            return await self._relay_caller(request)
        caller = await self._authenticate_jwt(request, credential)
        if caller.agent_id != request.host.agent_id:
            raise self._rejection(request)
        return caller

    async def _relay_caller(self, request: AuthRequest) -> Caller:
        agent_id = request.host.agent_id
        assert agent_id is not None
        return Caller(CallerKind.RELAY, await self._gateways.get_tenant_id(agent_id), agent_id=agent_id)

    async def _authenticate_jwt(self, request: AuthRequest, credential: Credential) -> Caller:
        """Authenticate a JWT: a service key or a platform token."""
        if credential.source is not CredentialSource.HEADER:
            raise self._rejection(request)
        try:
            if is_platform(credential.token):
                return await self._platform.verify(credential.token, is_inside=request.host.kind is HostKind.RELAY)
            return await self._keys.verify(credential.token, counts_use=request.counts_use)
        except Unauthorised as error:
            raise self._rejection(request) from error

    async def _authenticate_gateway(self, request: AuthRequest, credential: Credential) -> Caller:
        if credential.source is CredentialSource.COOKIE:
            check_same_origin(request, is_shared=bool(request.host.cookie_prefix))
        try:
            return await self._gateways.verify(credential.token)
        except Unauthorised as error:
            raise self._rejection(request) from error

    def _credential(self, request: AuthRequest) -> Credential:
        if (credential := find_credential(request.headers, request.query)) is None:
            raise MissingCredential
        return credential

    def _rejection(self, request: AuthRequest) -> Unauthorised:
        self._throttle.record_failure(request.limited_client)
        return Unauthorised()


def _act_as(caller: Caller) -> Caller:
    current_actor.set(caller.actor)
    return caller


AgentId = Annotated[str, Path(alias="agentId")]
_Authenticator = Annotated[Authenticator, Depends(provide_service(Authenticator))]
_CallerContext = AbstractAsyncContextManager[Caller]


def _require_caller(kinds: CallerKinds) -> Callable[..., Coroutine[Any, Any, Caller]]:
    async def dependency(connection: HTTPConnection, authenticator: _Authenticator) -> Caller:
        return await authenticator.authenticate(auth_request_of(connection), kinds)

    return dependency


def _require_agent_caller(kinds: CallerKinds, *, bearer: bool = False) -> Callable[..., AsyncGenerator[Caller, None]]:
    """Return the dependency for a path with an agent; with `bearer`, tokens count only in `Authorization`."""

    async def dependency(
        connection: HTTPConnection, authenticator: _Authenticator, agent_id: AgentId
    ) -> AsyncGenerator[Caller, None]:
        request = auth_request_of(connection)
        if bearer:
            request = replace(request, query="", headers={**request.headers, "cookie": session_cookie_pair(request)})
        caller = await authenticator.authenticate(request, kinds, agent_id)
        async with authenticator.hold_authorization(caller):
            yield caller

    return dependency


async def git_caller(
    connection: HTTPConnection, authenticator: _Authenticator, agent_id: AgentId
) -> AsyncGenerator[Caller, None]:
    caller = await authenticator.authenticate_git(auth_request_of(connection), agent_id)
    async with authenticator.hold_authorization(caller):
        yield caller


async def model_caller(connection: HTTPConnection, authenticator: _Authenticator) -> AsyncGenerator[Caller, None]:
    caller = await authenticator.authenticate_model(auth_request_of(connection))
    async with authenticator.hold_authorization(caller):
        yield caller


async def tenant_visit(connection: HTTPConnection, authenticator: _Authenticator) -> _CallerContext:
    return authenticator.authorize_visit(auth_request_of(connection), None)


async def agent_visit(connection: HTTPConnection, authenticator: _Authenticator, agent_id: AgentId) -> _CallerContext:
    return authenticator.authorize_visit(auth_request_of(connection), agent_id)


def _require_scope(scope: str, *, admits_agents: bool = False) -> Callable[..., AsyncGenerator[Caller, None]]:
    async def dependency(connection: HTTPConnection, authenticator: _Authenticator) -> AsyncGenerator[Caller, None]:
        request = auth_request_of(connection)
        caller = await authenticator.authenticate_storage(request, scope, admits_agents=admits_agents)
        async with authenticator.hold_authorization(caller):
            yield caller

    return dependency


STORAGE_CALLERS = {
    scope: _require_scope(scope)
    for scope in (
        *(f"org:{resource}:{action}" for resource in ("files", "groups", "gateways") for action in ("read", "write")),
        "org:analytics:read",
        "org:read",
        "org:write",
        ANY_SCOPE,
    )
}
"""Dependencies that require a scope, by scope."""

AGENT_STORAGE_CALLERS = {scope: _require_scope(scope, admits_agents=True) for scope in ("org:read", "org:write")}
"""Dependencies that require a scope, or an agent, by scope."""

service_caller = _require_caller(SERVICE)
tenant_caller = _require_caller(SERVICE | {CallerKind.PLATFORM})
owner_caller = _require_agent_caller(SERVICE)
agent_caller = _require_agent_caller(AGENT)
reader_caller = _require_agent_caller(AGENT | {CallerKind.PLATFORM})
inside_caller = _require_agent_caller(MODEL)
self_caller = _require_agent_caller(frozenset({CallerKind.GATEWAY, CallerKind.PLATFORM, CallerKind.RELAY}))
known_caller = _require_agent_caller(frozenset(CallerKind))
bearer_caller = _require_agent_caller(AGENT, bearer=True)
exchange_caller = _require_agent_caller(frozenset({CallerKind.GATEWAY, CallerKind.RELAY}), bearer=True)

ServiceCaller = Annotated[Caller, Depends(service_caller)]
"""A service JWT (contract: JWT), or a browser session at the dashboard's hosts, as for all that accept a JWT."""
TenantCaller = Annotated[Caller, Depends(tenant_caller)]
"""A service JWT, or an agent's platform token."""
AgentCaller = Annotated[Caller, Depends(agent_caller)]
"""A service JWT of the agent's tenant, or the agent's gateway token (contract: JWT / GW)."""
BearerCaller = Annotated[Caller, Depends(bearer_caller)]
"""As AgentCaller, with the credential in the header: the cookie would let pages of the agent get its token."""
OwnerCaller = Annotated[Caller, Depends(owner_caller)]
"""A service JWT of the agent's tenant (contract: JWT, on a path with an agent)."""
ReaderCaller = Annotated[Caller, Depends(reader_caller)]
"""As AgentCaller, or the agent's platform token."""
InsideCaller = Annotated[Caller, Depends(inside_caller)]
"""As AgentCaller, or the agent itself from its container."""
SelfCaller = Annotated[Caller, Depends(self_caller)]
"""The agent itself: by gateway token, by platform token, or from its container."""
KnownCaller = Annotated[Caller, Depends(known_caller)]
"""Any caller with access to the agent: its tenant, the holder of its token, or the agent itself."""
ExchangeCaller = Annotated[Caller, Depends(exchange_caller)]
"""Callers that can get a platform token: the gateway token in the header, or the agent from its container."""
ModelCaller = Annotated[Caller, Depends(model_caller)]
"""Any caller with access to the model gateway."""
GitCaller = Annotated[Caller, Depends(git_caller)]
"""The agent's gateway token as the password of HTTP Basic (contract: Git Basic)."""
TenantVisit = Annotated[_CallerContext, Depends(tenant_visit)]
AgentVisit = Annotated[_CallerContext, Depends(agent_visit)]
"""As ServiceCaller and AgentCaller, for a stream that ends when the credential becomes invalid."""
FilesReader = Annotated[Caller, Depends(STORAGE_CALLERS["org:files:read"])]
FilesWriter = Annotated[Caller, Depends(STORAGE_CALLERS["org:files:write"])]
GroupsReader = Annotated[Caller, Depends(STORAGE_CALLERS["org:groups:read"])]
GroupsWriter = Annotated[Caller, Depends(STORAGE_CALLERS["org:groups:write"])]
GatewaysReader = Annotated[Caller, Depends(STORAGE_CALLERS["org:gateways:read"])]
GatewaysWriter = Annotated[Caller, Depends(STORAGE_CALLERS["org:gateways:write"])]
AnalyticsReader = Annotated[Caller, Depends(STORAGE_CALLERS["org:analytics:read"])]
OrgReader = Annotated[Caller, Depends(STORAGE_CALLERS["org:read"])]
OrgWriter = Annotated[Caller, Depends(STORAGE_CALLERS["org:write"])]
"""Service JWTs with a scope of the storage API."""
VectorsReader = Annotated[Caller, Depends(AGENT_STORAGE_CALLERS["org:read"])]
VectorsWriter = Annotated[Caller, Depends(AGENT_STORAGE_CALLERS["org:write"])]
"""As OrgReader and OrgWriter, or the agent itself: from its container or with its platform token."""
StorageCaller = Annotated[Caller, Depends(STORAGE_CALLERS[ANY_SCOPE])]
"""A service JWT on the storage API, with any scopes."""
