"""What both wings stand on: settings, database, sealing, background work, addresses, identity, the way out."""

import socket

from prometheus_client import CollectorRegistry

from roost.agents.egress.policy import Policy
from roost.agents.egress.resolver import SystemResolver
from roost.app.outside import open_database
from roost.config import Settings
from roost.hosts.address import Addresses
from roost.identity.door import Door
from roost.identity.gateways import Gateways
from roost.identity.keys import Keys
from roost.identity.platform import Platform
from roost.keyring import sealer
from roost.web.provide import Rooms
from roost.work import Work


class Ground:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.addresses = Addresses(settings.domain, settings.public_port, settings.public_scheme)
        self.registry = CollectorRegistry()
        self.rooms = Rooms()
        self.db = open_database(settings)
        self.seal = sealer(settings, self.db)
        self.queue = Work(self.db, owner=f"{socket.gethostname()}:{settings.data}"[-100:])
        self.keys, self.gateways = Keys(self.db, self.seal), Gateways(self.db, self.seal)
        self.platform = Platform(self.db, self.seal, self.gateways)
        self.door = Door(self.keys, self.gateways, self.platform)
        self.resolver = SystemResolver()
        self.policy = Policy(
            allow_private=settings.egress_allow,
            deny_hosts=settings.egress_deny_hosts,
            hosts=settings.egress_hosts,
        )
        for room in (self.door, self.keys, self.gateways):
            self.rooms.add(room)

    def close(self) -> None:
        self.resolver.close()
        self.db.close()
