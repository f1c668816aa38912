"""The door: turns the credential of a request into a Caller, or says why not. The only reader of credentials.

A credential is taken from `Authorization: Bearer`, else from `?token=`, else from the cookie `gw_token`; the first that
is there counts and the others are not looked at. Which kind is accepted depends on the address ("surface"): service
JWTs on the management address, gateway tokens on the agent's own address, both on `localhost`, and on an agent's
relay socket none, because the socket is the identity.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Path
from starlette.requests import HTTPConnection

from roost.core.problem import Missing
from roost.identity.caller import Caller, CallerKind
from roost.identity.errors import ForeignOrigin, MissingCredential, PermissionDenied, Unauthorised
from roost.identity.gateways import Gateways
from roost.identity.keys import Keys
from roost.identity.throttle import Throttle
from roost.web.provide import provide

COOKIE = "gw_token"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Surface(StrEnum):
    """The address that a request came to."""

    MANAGEMENT = "management"
    AGENT = "agent"
    LOCAL = "local"
    RELAY = "relay"


@dataclass(frozen=True)
class Credential:
    token: str
    from_cookie: bool = False


@dataclass(frozen=True)
class Entry:
    """What the door looks at. `agent_id` is the agent whose address or relay it is; `origin` is that address's own."""

    surface: Surface
    method: str
    headers: Mapping[str, str]
    query: str
    peer: str
    agent_id: str | None = None
    origin: str = ""
    upgrade: bool = False


class Door:
    def __init__(self, keys: Keys, gateways: Gateways) -> None:
        self._keys = keys
        self._gateways = gateways
        self._throttle = Throttle()

    async def service(self, entry: Entry) -> Caller:
        """A service JWT on an address that takes one."""
        credential = self._credential(entry)
        if entry.surface not in (Surface.MANAGEMENT, Surface.LOCAL):
            raise self._refused(entry)
        return await self._service(entry, credential)

    async def agent(self, entry: Entry, agent_id: str) -> Caller:
        """Whoever may act on `agent_id`: its tenant by JWT, or the holder of its gateway token.

        Raises UnknownAgent for a JWT and an agent that does not exist; an agent of another tenant is Unauthorised.
        """
        credential = self._credential(entry)
        if entry.surface is Surface.AGENT or (entry.surface is Surface.LOCAL and _is_gateway(credential)):
            caller = await self._gateway(entry, credential)
            if caller.agent_id != agent_id or entry.agent_id not in (None, agent_id):
                raise self._refused(entry)
            return caller
        caller = await self._service(entry, credential)
        await self.owned(caller, agent_id, entry)
        return caller

    async def model(self, entry: Entry) -> Caller:
        """Whoever has a credential that counts at the address, which is whoever may use the model gateway: an agent
        through its relay or by its token, a tenant by its JWT.
        """
        if entry.surface is Surface.RELAY:
            assert entry.agent_id is not None
            tenant_id = await self._gateways.owner(entry.agent_id)
            return Caller(CallerKind.RELAY, tenant_id, agent_id=entry.agent_id)
        if entry.surface is Surface.AGENT:
            return await self.holder(entry)
        credential = self._credential(entry)
        if entry.surface is Surface.LOCAL and _is_gateway(credential):
            return await self._gateway(entry, credential)
        return await self._service(entry, credential)

    async def holder(self, entry: Entry) -> Caller:
        """The holder of the token of the agent whose address this is."""
        caller = await self._gateway(entry, self._credential(entry))
        if caller.agent_id != entry.agent_id:
            raise self._refused(entry)
        return caller

    @asynccontextmanager
    async def held(self, caller: Caller) -> AsyncGenerator[Caller, None]:
        """The caller for as long as a request lasts: one who came by a gateway token stays no longer than it counts."""
        if caller.kind is not CallerKind.GATEWAY or caller.agent_id is None:
            yield caller
            return
        async with self._gateways.held(caller.agent_id):
            yield caller

    async def owned(self, caller: Caller, agent_id: str, entry: Entry) -> None:
        if await self._gateways.owner(agent_id) != caller.tenant_id:
            raise self._refused(entry)

    async def _service(self, entry: Entry, credential: Credential) -> Caller:
        if credential.from_cookie:
            raise self._refused(entry)
        try:
            caller = await self._keys.verify(credential.token)
        except Unauthorised as refusal:
            raise self._refused(entry) from refusal
        action = "read" if entry.method in _SAFE_METHODS else "write"
        if not caller.allows(f"org:agents:{action}"):
            raise PermissionDenied
        return caller

    async def _gateway(self, entry: Entry, credential: Credential) -> Caller:
        if credential.from_cookie:
            _same_origin(entry)
        try:
            return await self._gateways.verify(credential.token)
        except Unauthorised as refusal:
            raise self._refused(entry) from refusal

    def _credential(self, entry: Entry) -> Credential:
        if entry.surface is Surface.RELAY:
            raise Missing
        credential = find(entry.headers, entry.query)
        if credential is None:
            raise MissingCredential
        return credential

    def _refused(self, entry: Entry) -> Unauthorised:
        self._throttle.failed(f"{entry.peer} {entry.agent_id or ''}")
        return Unauthorised()


def find(headers: Mapping[str, str], query: str) -> Credential | None:
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


def entry_of(connection: HTTPConnection) -> Entry:
    """What the door looks at, from a request that the host dispatch has marked with its surface."""
    state = connection.scope["state"]
    return Entry(
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


def _same_origin(entry: Entry) -> None:
    """A cookie comes along with whatever page makes the request, so the page has to be the agent's own (RFC 6454)."""
    origin = entry.headers.get("origin")
    if origin is None and not entry.upgrade:
        return
    if origin == entry.origin or (entry.method in _SAFE_METHODS and not entry.upgrade):
        return
    raise ForeignOrigin


_Door = Annotated[Door, Depends(provide(Door))]


async def service_caller(connection: HTTPConnection, door: _Door) -> Caller:
    return await door.service(entry_of(connection))


async def agent_caller(
    connection: HTTPConnection, door: _Door, agent_id: Annotated[str, Path(alias="agentId")]
) -> AsyncGenerator[Caller, None]:
    async with door.held(await door.agent(entry_of(connection), agent_id)) as caller:
        yield caller


async def owner_caller(
    connection: HTTPConnection, door: _Door, agent_id: Annotated[str, Path(alias="agentId")]
) -> Caller:
    entry = entry_of(connection)
    caller = await door.service(entry)
    await door.owned(caller, agent_id, entry)
    return caller


async def model_caller(connection: HTTPConnection, door: _Door) -> AsyncGenerator[Caller, None]:
    async with door.held(await door.model(entry_of(connection))) as caller:
        yield caller


ServiceCaller = Annotated[Caller, Depends(service_caller)]
"""A service JWT (contract: JWT)."""
AgentCaller = Annotated[Caller, Depends(agent_caller)]
"""A service JWT of the agent's tenant, or the agent's gateway token (contract: JWT / GW)."""
OwnerCaller = Annotated[Caller, Depends(owner_caller)]
"""A service JWT of the agent's tenant (contract: JWT, on a path with an agent)."""
ModelCaller = Annotated[Caller, Depends(model_caller)]
"""Whoever may use the model gateway."""
AgentId = Annotated[str, Path(alias="agentId")]
