"""The model gateway as an application, behind the real authenticator."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from roost.agents.models.gateway.api import router
from roost.agents.models.gateway.service import ModelGateway
from roost.core.db import Connection, Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json, ModelUpstream, UpstreamProblem
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.authenticator import Authenticator
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle
from roost.web import errors
from roost.web.service_registry import ServiceRegistry
from roost.web.url_rule import HostAddress, HostKind
from tests.http.asgi import routed

AGENT = "agent-1"


class ModelEnv:
    """Model gateway with a tenant. `key` is a service JWT, `relayed` the application behind the agent's relay."""

    tenant_id: str
    key: Sensitive[str]
    token: Sensitive[str]

    def __init__(self, database: Database, gateway: ModelGateway) -> None:
        self.database = database
        self.gateway = gateway
        sealer = Sealer(Sensitive(b"k" * 32))
        self._keys = ApiKeys(database, sealer)
        self._gateways = GatewayTokens(database, sealer)
        services = ServiceRegistry()
        platform = PlatformTokens(database, sealer, self._gateways)
        throttle = FailedLoginThrottle()
        sessions = BrowserSessions(database, self._keys, throttle, "http://localhost")
        for service in (gateway, Authenticator(self._keys, self._gateways, platform, sessions, throttle)):
            services.add(service)
        self.app = FastAPI()
        self.app.state.services = services
        self.app.include_router(router)
        errors.install_error_handlers(self.app)

    async def create_tenant(self) -> None:
        def create_tenant(connection: Connection) -> None:
            tenant = tenants.ensure_tenant(connection, "default")
            self.tenant_id = tenant.id
            self.key = self._keys.issue(connection, tenant, "test")
            self.token = self._gateways.mint(connection, AGENT, tenant.id)

        await self.database.write(create_tenant)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        state = routed(scope["path"], scope["method"], HostAddress(HostKind.LOCAL, ""))
        await self.app({**scope, "state": state}, receive, send)

    async def relayed(self, scope: Any, receive: Any, send: Any) -> None:
        state = routed(scope["path"], scope["method"], HostAddress(HostKind.RELAY, "", AGENT))
        await self.app({**scope, "state": state}, receive, send)


@asynccontextmanager
async def open_model_env(
    database: Database, upstreams: Sequence[ModelUpstream], default: str | None = None, **limits: Any
) -> AsyncIterator[ModelEnv]:
    gateway = ModelGateway(database, upstreams, default, **limits)
    env = ModelEnv(database, gateway)
    await env.create_tenant()
    await gateway.start()
    try:
        yield env
    finally:
        await gateway.stop()


class ControlledUpstream(ModelUpstream):
    """An upstream whose every move a test sets.

    An answer stands still (a stream after its chunks) while it `holds`, a list of models while it `stalls`.
    """

    def __init__(self, name: str = "controlled", models: Sequence[str] = ("one", "two")) -> None:
        super().__init__(name)
        self.serves: Sequence[str] | UpstreamProblem = models
        self.chunks: Sequence[Json | UpstreamProblem] = [piece("hello"), piece(finish="stop")]
        self.answer: Json = {"choices": [{"message": {"role": "assistant", "content": "hello"}}]}
        self.fails: UpstreamProblem | None = None
        self.holds = self.stalls = False
        self.asked = self.waiting = self.left = self.closed = 0
        self.requests: list[ChatRequest] = []

    async def list_models(self) -> Sequence[str]:
        self.asked += 1
        await asyncio.sleep(0)
        while self.stalls:
            await asyncio.sleep(0.005)
        if isinstance(self.serves, UpstreamProblem):
            raise self.serves
        return self.serves

    async def complete(self, request: ChatRequest) -> Json:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        await self._hold()
        return self.answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        self.requests.append(request)
        for chunk in self.chunks:
            if isinstance(chunk, UpstreamProblem):
                raise chunk
            yield chunk
        await self._hold()

    async def close(self) -> None:
        self.closed += 1

    async def _hold(self) -> None:
        self.waiting += self.holds
        try:
            while self.holds:
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.left += 1
            raise


def piece(text: str = "", finish: str | None = None, **more: Any) -> Json:
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}
