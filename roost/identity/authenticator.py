"""The door: turns the credential of a request into a Caller, or says why not. The only reader of credentials.

A credential is taken from `Authorization: Bearer`, else from `?token=`, else from the cookie `gw_token`; the first that
is there counts and the others are not looked at. Which kind is accepted depends on the address ("surface"): service
JWTs and platform tokens on the management address, gateway tokens on the agent's own address, all on `localhost`. On an
agent's relay socket none is needed, because the socket is the identity; a platform token counts there, too. What a
caller may do is said by the type in a handler's signature; a platform token opens only what names it.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Path
from starlette.requests import HTTPConnection

from roost.core.problem import NotFound
from roost.identity.api_keys import ApiKeys
from roost.identity.caller import Caller, CallerKind
from roost.identity.errors import ForeignOrigin, MissingCredential, PermissionDenied, Unauthorised
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens, is_platform
from roost.identity.throttle import FailedLoginThrottle
from roost.web.service_registry import provide_service
from roost.web.url_rule import HostKind

COOKIE = "gw_token"
ANY_SCOPE = "any scope"
PAIR = ("pinata_api_key", "pinata_secret_api_key")
"""The headers of a key's handle and secret, under the names that old storage clients have for them."""
_HELD = frozenset({CallerKind.GATEWAY, CallerKind.PLATFORM})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


_STORAGE = frozenset({HostKind.STORAGE, HostKind.STORAGE_GATEWAY})


@dataclass(frozen=True)
class Credential:
    token: str
    from_cookie: bool = False


@dataclass(frozen=True)
class AuthRequest:
    """What the door looks at. `agent_id` is the agent whose address or relay it is; `origin` is that address's own."""

    surface: HostKind
    method: str
    headers: Mapping[str, str]
    query: str
    peer: str
    agent_id: str | None = None
    origin: str = ""
    upgrade: bool = False


Kinds = frozenset[CallerKind]
SERVICE: Kinds = frozenset({CallerKind.SERVICE})
AGENT: Kinds = SERVICE | {CallerKind.GATEWAY}
MODEL: Kinds = AGENT | {CallerKind.RELAY}


class Authenticator:
    def __init__(self, keys: ApiKeys, gateways: GatewayTokens, platform: PlatformTokens) -> None:
        self._keys = keys
        self._gateways = gateways
        self._platform = platform
        self._throttle = FailedLoginThrottle()

    async def authenticate_any(self, entry: AuthRequest) -> Caller:
        """Whoever has a credential that counts at the address."""
        if entry.surface is HostKind.RELAY:
            return await self._relayed(entry)
        if entry.surface is HostKind.AGENT:
            return await self.authenticate_gateway_token(entry)
        credential = self._credential(entry)
        if entry.surface in _STORAGE:
            raise self._refused(entry)
        if entry.surface is HostKind.LOCAL and _is_gateway(credential):
            return await self._gateway(entry, credential)
        return await self._token(entry, credential)

    async def authenticate_storage(self, entry: AuthRequest, scope: str) -> Caller:
        """A service JWT with that scope (`org:files:read`), on an address of the storage API. Who may write may read.

        Raises PermissionDenied without the scope.
        """
        verified = self._shown(entry)
        if entry.surface not in {HostKind.STORAGE, HostKind.LOCAL} or verified is None:
            raise self._refused(entry)
        try:
            caller = await verified()
        except Unauthorised as refusal:
            raise self._refused(entry) from refusal
        if (
            scope != ANY_SCOPE
            and not caller.allows(scope)
            and not caller.allows(scope.removesuffix(":read") + ":write")
        ):
            raise PermissionDenied(f"Permission denied: the key needs the scope {scope}")
        return caller

    def _shown(self, entry: AuthRequest) -> Callable[[], Coroutine[Any, Any, Caller]] | None:
        """How to verify what is shown to the storage API: a JWT, or without one the two headers of old clients.

        None for a cookie. Raises MissingCredential.
        """
        handle, secret = map(entry.headers.get, PAIR)
        if handle and secret and "authorization" not in entry.headers:
            return partial(self._keys.verify_pair, handle, secret)
        credential = self._credential(entry)
        return None if credential.from_cookie else partial(self._keys.verify, credential.token)

    async def admit(self, entry: AuthRequest, kinds: Kinds, agent_id: str | None = None) -> Caller:
        """A caller of one of these kinds; on a path with an agent, one who may act on that agent.

        Raises UnknownAgent for a service JWT and an agent that does not exist; an agent of another tenant is
        Unauthorised. To whom a platform token belongs is known, so it is told PermissionDenied. A box finds nothing
        at a path that is not for boxes.
        """
        caller = await self.authenticate_any(entry)
        if caller.kind in kinds:
            await self._concerned(caller, agent_id, entry)
            return caller
        if caller.kind is CallerKind.RELAY:
            raise NotFound
        raise PermissionDenied if caller.kind is CallerKind.PLATFORM else self._refused(entry)

    async def authenticate_service(self, entry: AuthRequest) -> Caller:
        """A service JWT on an address that takes one."""
        return await self.admit(entry, SERVICE)

    async def authenticate_agent(self, entry: AuthRequest, agent_id: str) -> Caller:
        """Whoever may act on `agent_id`: its tenant by JWT, or the holder of its gateway token."""
        return await self.admit(entry, AGENT, agent_id)

    async def authenticate_model(self, entry: AuthRequest) -> Caller:
        """Whoever may use the model gateway: an agent through its relay or by its token, a tenant by its JWT."""
        if entry.surface is HostKind.RELAY:  # engines show whatever they were given for a key
            return await self._by_socket(entry)
        return await self.admit(entry, MODEL)

    async def authenticate_gateway_token(self, entry: AuthRequest) -> Caller:
        """The holder of the token of the agent whose address this is."""
        caller = await self._gateway(entry, self._credential(entry))
        if caller.agent_id != entry.agent_id:
            raise self._refused(entry)
        return caller

    @asynccontextmanager
    async def hold_authorization(self, caller: Caller) -> AsyncGenerator[Caller, None]:
        """The caller for as long as a request lasts: one who came by a gateway token, or by what it was exchanged for,
        stays no longer than it counts.
        """
        if caller.kind not in _HELD or caller.agent_id is None:
            yield caller
            return
        async with self._gateways.hold_open(caller.agent_id):
            yield caller

    @asynccontextmanager
    async def authorize_visit(self, entry: AuthRequest, agent_id: str) -> AsyncGenerator[Caller, None]:
        """`agent` and `held` in one, for a stream that may outlive its credential and then ends in its own way."""
        async with self.hold_authorization(await self.authenticate_agent(entry, agent_id)) as caller:
            yield caller

    async def check_owner(self, caller: Caller, agent_id: str, entry: AuthRequest) -> None:
        if await self._gateways.get_tenant_id(agent_id) != caller.tenant_id:
            raise self._refused(entry)

    async def _concerned(self, caller: Caller, agent_id: str | None, entry: AuthRequest) -> None:
        if agent_id is None or caller.agent_id == agent_id:
            return
        if caller.kind is CallerKind.SERVICE:
            await self.check_owner(caller, agent_id, entry)
        elif caller.kind is CallerKind.GATEWAY:
            raise self._refused(entry)
        else:
            raise PermissionDenied if caller.kind is CallerKind.PLATFORM else NotFound

    async def _relayed(self, entry: AuthRequest) -> Caller:
        """The socket is the identity, unless a platform token is shown: then it counts, and has to be that agent's."""
        credential = find_credential(entry.headers, "")
        if credential is None or credential.from_cookie or not is_platform(credential.token):
            return await self._by_socket(entry)
        caller = await self._token(entry, credential)
        if caller.agent_id != entry.agent_id:
            raise self._refused(entry)
        return caller

    async def _by_socket(self, entry: AuthRequest) -> Caller:
        assert entry.agent_id is not None
        return Caller(CallerKind.RELAY, await self._gateways.get_tenant_id(entry.agent_id), agent_id=entry.agent_id)

    async def _token(self, entry: AuthRequest, credential: Credential) -> Caller:
        """A JWT: a service key, or an agent's platform token."""
        if credential.from_cookie:
            raise self._refused(entry)
        verify = self._platform.verify if is_platform(credential.token) else self._keys.verify
        try:
            caller = await verify(credential.token)
        except Unauthorised as refusal:
            raise self._refused(entry) from refusal
        action = "read" if entry.method in _SAFE_METHODS else "write"
        if not caller.allows(f"org:agents:{action}"):
            raise PermissionDenied
        return caller

    async def _gateway(self, entry: AuthRequest, credential: Credential) -> Caller:
        if credential.from_cookie:
            _same_origin(entry)
        try:
            return await self._gateways.verify(credential.token)
        except Unauthorised as refusal:
            raise self._refused(entry) from refusal

    def _credential(self, entry: AuthRequest) -> Credential:
        credential = find_credential(entry.headers, entry.query)
        if credential is None:
            raise MissingCredential
        return credential

    def _refused(self, entry: AuthRequest) -> Unauthorised:
        self._throttle.record_failure(f"{entry.peer} {entry.agent_id or ''}")
        return Unauthorised()


def find_credential(headers: Mapping[str, str], query: str) -> Credential | None:
    """The credential of a request; `headers` has lower-case names, `query` is the raw query string."""
    if authorization := headers.get("authorization"):
        scheme, _, token = authorization.partition(" ")
        return Credential(token.strip() if scheme.lower() == "bearer" else "")
    if "token=" in query:
        for name, value in parse_qsl(query):
            if name == "token":
                return Credential(value)
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.partition("=")
        if name.strip() == COOKIE:
            return Credential(value.strip().strip('"'), from_cookie=True)
    return None


def auth_request_of(connection: HTTPConnection) -> AuthRequest:
    """What the door looks at, from a request that the host dispatch has marked with its surface."""
    state = connection.scope["state"]
    return AuthRequest(
        surface=state["surface"],
        method=connection.scope.get("method", "GET"),
        headers=dict(reversed(connection.headers.items())),
        query=connection.scope["query_string"].decode("latin-1"),
        peer=connection.client.host if connection.client else "",
        agent_id=state.get("agent_host"),
        origin=state.get("origin", ""),
        upgrade=connection.scope["type"] == "websocket",
    )


def _is_gateway(credential: Credential) -> bool:
    return credential.from_cookie or credential.token.startswith("rst_")


def _same_origin(entry: AuthRequest) -> None:
    """A cookie comes along with whatever page makes the request, so the page has to be the agent's own (RFC 6454)."""
    origin = entry.headers.get("origin")
    if origin is None and not entry.upgrade:
        return
    if origin == entry.origin or (entry.method in _SAFE_METHODS and not entry.upgrade):
        return
    raise ForeignOrigin


_Door = Annotated[Authenticator, Depends(provide_service(Authenticator))]


_PathAgent = Annotated[str, Path(alias="agentId")]


def _anywhere(kinds: Kinds) -> Callable[..., Coroutine[Any, Any, Caller]]:
    async def dependency(connection: HTTPConnection, door: _Door) -> Caller:
        return await door.admit(auth_request_of(connection), kinds)

    return dependency


def _at_agent(kinds: Kinds, *, bearer: bool = False) -> Callable[..., AsyncGenerator[Caller, None]]:
    """On a path with an agent. bearer: a gateway token counts only in the `Authorization` header."""

    async def dependency(connection: HTTPConnection, door: _Door, agent_id: _PathAgent) -> AsyncGenerator[Caller, None]:
        entry = auth_request_of(connection)
        if bearer:
            entry = replace(entry, query="", headers={**entry.headers, "cookie": ""})
        async with door.hold_authorization(await door.admit(entry, kinds, agent_id)) as caller:
            yield caller

    return dependency


async def model_caller(connection: HTTPConnection, door: _Door) -> AsyncGenerator[Caller, None]:
    async with door.hold_authorization(await door.authenticate_model(auth_request_of(connection))) as caller:
        yield caller


async def agent_visit(
    connection: HTTPConnection, door: _Door, agent_id: _PathAgent
) -> AbstractAsyncContextManager[Caller]:
    return door.authorize_visit(auth_request_of(connection), agent_id)


def _storage(scope: str) -> Callable[..., Coroutine[Any, Any, Caller]]:
    async def dependency(connection: HTTPConnection, door: _Door) -> Caller:
        return await door.authenticate_storage(auth_request_of(connection), scope)

    return dependency


STORAGE_CALLERS = {
    scope: _storage(scope)
    for scope in (
        *(f"org:{resource}:{action}" for resource in ("files", "groups", "gateways") for action in ("read", "write")),
        *("org:analytics:read", "org:read", "org:write", ANY_SCOPE),
    )
}
"""By scope, the dependency that lets in who has it."""

service_caller = _anywhere(SERVICE)
tenant_caller = _anywhere(SERVICE | {CallerKind.PLATFORM})
owner_caller = _at_agent(SERVICE)
agent_caller = _at_agent(AGENT)
reader_caller = _at_agent(AGENT | {CallerKind.PLATFORM})
inside_caller = _at_agent(MODEL)
self_caller = _at_agent(frozenset({CallerKind.GATEWAY, CallerKind.PLATFORM, CallerKind.RELAY}))
known_caller = _at_agent(frozenset(CallerKind))
exchange_caller = _at_agent(frozenset({CallerKind.GATEWAY, CallerKind.RELAY}), bearer=True)

ServiceCaller = Annotated[Caller, Depends(service_caller)]
"""A service JWT (contract: JWT)."""
TenantCaller = Annotated[Caller, Depends(tenant_caller)]
"""A service JWT, or an agent on its owner's behalf with a platform token."""
AgentCaller = Annotated[Caller, Depends(agent_caller)]
"""A service JWT of the agent's tenant, or the agent's gateway token (contract: JWT / GW)."""
OwnerCaller = Annotated[Caller, Depends(owner_caller)]
"""A service JWT of the agent's tenant (contract: JWT, on a path with an agent)."""
ReaderCaller = Annotated[Caller, Depends(reader_caller)]
"""As AgentCaller, and the agent itself with a platform token."""
InsideCaller = Annotated[Caller, Depends(inside_caller)]
"""As AgentCaller, and the agent itself from inside its box."""
SelfCaller = Annotated[Caller, Depends(self_caller)]
"""The agent itself: its gateway token, its platform token, or from inside its box."""
KnownCaller = Annotated[Caller, Depends(known_caller)]
"""Whoever has to do with the agent: its tenant, the holder of its token, itself in every way."""
ExchangeCaller = Annotated[Caller, Depends(exchange_caller)]
"""Who may ask for a platform token: the gateway token in the header, or the agent from inside its box."""
ModelCaller = Annotated[Caller, Depends(model_caller)]
"""Whoever may use the model gateway."""
AgentVisit = Annotated[AbstractAsyncContextManager[Caller], Depends(agent_visit)]
"""As AgentCaller, for a stream: whoever enters it is admitted for as long as the credential counts."""
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
StorageCaller = Annotated[Caller, Depends(STORAGE_CALLERS[ANY_SCOPE])]
"""A service JWT on an address of the storage API, whatever its scopes."""
AgentId = Annotated[str, Path(alias="agentId")]
