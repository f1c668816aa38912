"""The model gateway as an application, with the real door before it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from roost.agents.models.api import router
from roost.agents.models.service import ModelGateway
from roost.core.db import Connection, Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import Upstream
from roost.identity import tenants
from roost.identity.door import Door, Surface
from roost.identity.gateways import Gateways
from roost.identity.keys import Keys
from roost.web import errors
from roost.web.provide import Rooms

AGENT = "agent-1"


class House:
    """`key` is a service JWT of the tenant, `relayed` the same application as the agent's relay serves it."""

    def __init__(self, database: Database, gateway: ModelGateway) -> None:
        self.database = database
        self.gateway = gateway
        sealer = Sealer(Sensitive(b"k" * 32))
        self._keys = Keys(database, sealer)
        self._gateways = Gateways(database, sealer)
        rooms = Rooms()
        for room in (gateway, Door(self._keys, self._gateways)):
            rooms.add(room)
        self.app = FastAPI()
        self.app.state.rooms = rooms
        self.app.include_router(router)
        errors.install(self.app)

    async def furnish(self) -> None:
        def furnish(connection: Connection) -> None:
            tenant = tenants.ensure(connection, "default")
            self.tenant_id = tenant.id
            self.key = self._keys.issue(connection, tenant, "test")
            self.token = self._gateways.mint(connection, AGENT, tenant.id)

        await self.database.write(furnish)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app({**scope, "state": {"surface": Surface.LOCAL}}, receive, send)

    async def relayed(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app({**scope, "state": {"surface": Surface.RELAY, "agent_host": AGENT}}, receive, send)


@asynccontextmanager
async def housed(
    database: Database, upstreams: Sequence[Upstream], default: str | None = None, **limits: Any
) -> AsyncIterator[House]:
    gateway = ModelGateway(database, upstreams, default, **limits)
    house = House(database, gateway)
    await house.furnish()
    await gateway.start()
    try:
        yield house
    finally:
        await gateway.stop()
