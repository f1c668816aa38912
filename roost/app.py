"""The composition root: the one module that knows every room. It builds a server from settings and drivers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from roost import migrations
from roost.agents.egress.policy import Policy
from roost.agents.egress.proxy import EgressProxy
from roost.agents.egress.resolver import Resolver
from roost.agents.lifecycle import model as lifecycle
from roost.agents.lifecycle.detail import Details
from roost.agents.lifecycle.gateway import GatewayStarter
from roost.agents.lifecycle.launch import Launch
from roost.agents.lifecycle.reconcile import Reconciler
from roost.agents.lifecycle.restart import Restart
from roost.agents.lifecycle.start import Start
from roost.agents.lifecycle.teardown import Teardown
from roost.agents.logs.service import Logs
from roost.agents.models.service import ModelGateway
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.agents.workspace.service import Workspace
from roost.config import Settings
from roost.core import ids
from roost.core.db import Database
from roost.drivers.engine.contract import Engine
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.model.contract import Upstream
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import Limits, Runtime
from roost.hosts.address import Addresses
from roost.hosts.mount import application
from roost.hosts.relay import Relays
from roost.identity.caller import Plan
from roost.identity.door import Door
from roost.identity.gateways import Gateways
from roost.identity.keys import Keys
from roost.keyring import sealer
from roost.web.provide import Rooms
from roost.work.loop import Work


def open_database(settings: Settings) -> Database:
    """The deployment's database, migrated to this version."""
    settings.data.mkdir(parents=True, exist_ok=True)
    db = Database(settings.database_url.reveal())
    migrations.upgrade(db)
    return db


def engines(settings: Settings) -> Sequence[Engine]:
    """Every engine that there is, the default first."""
    return (OpenClaw(settings.engines), Hermes(settings.engines))


def runtime(settings: Settings) -> Runtime:
    return BwrapRuntime(settings.data)
