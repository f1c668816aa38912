"""Takeover of the agents of servers that are gone or leave, where any server can serve them (decision 0060)."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from zlib import crc32

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.hosts import store
from roost.agents.lifecycle.hosts.model import HEARTBEAT_SECONDS, HOST_TIMEOUT, Host
from roost.agents.lifecycle.hosts.service import LEAVING_TOPIC
from roost.agents.registry.repository import TAKEN_AT_ONCE, find_host_id, forget_host, list_shared_agents, take_agents
from roost.core import clock, log
from roost.core.db import Database, read_database_time
from roost.core.periodic import PeriodicTask

_LOOK_SECONDS = 2.0
_GRACE_SECONDS = HOST_TIMEOUT.total_seconds()
_RETENTION = timedelta(hours=1)
"""Age of the last heartbeat at which a server without agents is forgotten; one that returns later ends itself."""
_log = log.get_logger("takeover")


class AgentTakeover:
    """Gives this server its share of the agents of servers that are gone or leave.

    shared_runtime: name of this server's default runtime if it is shared; without it, nothing is taken. passing: gets
    the ids of the agents of a server that leaves while this one opens their relays.
    """

    def __init__(self, db: Database, host_id: str, shared_runtime: str | None, passing: set[str] | None = None) -> None:
        self._passing = set[str]() if passing is None else passing
        self._db, self._host_id, self._runtime = db, host_id, shared_runtime
        self._on_taken: Callable[[Collection[str]], object] = lambda _: None
        self._open_relays: Callable[[Collection[str]], Awaitable[object]]
        self._looked_at: datetime | None = None
        self._believes_at = float("-inf")
        self._task = PeriodicTask("takeover", self.look, _LOOK_SECONDS)
        db.subscribe(self._wake)

    def start(
        self, on_taken: Callable[[Collection[str]], object], open_relays: Callable[[Collection[str]], Awaitable[object]]
    ) -> None:
        """Look every two seconds; `on_taken` gets the ids of agents that are this server's from then on.

        open_relays: called before that with those of a server that leaves; it goes on to answer for them.
        """
        self._on_taken, self._open_relays = on_taken, open_relays
        if self._runtime is not None:
            self._task.start()

    async def stop(self) -> None:
        """Take no more agents. Idempotent."""
        await self._task.stop()

    async def look(self) -> None:
        """Take a share of the agents of each server that is gone or leaves."""
        hosts, now = await self._db.read(_list_hosts)
        if self._looked_at is None or abs(now - self._looked_at) > timedelta(seconds=HEARTBEAT_SECONDS):
            # This server is new, or hung or had no database, perhaps with all others, or the database's clock was set:
            # the others have to show themselves first.
            self._believes_at = clock.monotonic_seconds() + _GRACE_SECONDS
        self._looked_at = now
        for host in hosts:
            if self._is_gone(host, now):
                if host.is_leaving and host.is_running(now):
                    taken = await self._take_leaving(host.id)
                else:
                    taken = await self._db.write(partial(self._take_share, host.id))
                if taken:
                    _log.info("agents.taken_over", agents=len(taken), server=host.id)
                    self._on_taken(taken)

    async def has_takers(self) -> bool:
        """Return whether another server can take agents of this one."""
        hosts, now = await self._db.read(_list_hosts)
        return any(self._is_taker(host, now) and host.id != self._host_id for host in hosts)

    def _wake(self, topics: frozenset[str]) -> None:
        if LEAVING_TOPIC in topics:
            self._task.wake()

    def _is_taker(self, host: Host, now: datetime) -> bool:
        is_present = host.is_running(now) and not host.is_leaving
        return is_present and self._runtime is not None and host.shared_runtime == self._runtime

    def _is_gone(self, host: Host, now: datetime) -> bool:
        if host.id == self._host_id or host.shared_runtime != self._runtime:
            return False
        is_silent = not host.is_running(now) and clock.monotonic_seconds() >= self._believes_at
        return host.seen_at is None or host.is_leaving or is_silent

    async def _take_leaving(self, host_id: str) -> Collection[str]:
        """Take this server's share of the agents of one that leaves, many at a time, once their relays lead here."""
        share = (await self._db.read(partial(self._list_share, host_id)))[:TAKEN_AT_ONCE]
        self._passing.update(share)
        try:
            await self._open_relays(share)
            taken = await self._db.write(partial(self._take_share, host_id, only=share))
            if taken:
                self._task.wake()  # for the rest
            return taken
        finally:
            self._passing.difference_update(share)

    def _list_share(self, host_id: str, connection: Connection) -> Sequence[str]:
        hosts, now = _list_hosts(connection)
        takers = sorted(one.id for one in hosts if self._is_taker(one, now))
        if self._host_id not in takers or self._runtime is None:
            return ()
        agents, rank = list_shared_agents(connection, host_id, self._runtime), takers.index(self._host_id)
        return [agent_id for agent_id in agents if crc32(agent_id.encode()) % len(takers) == rank]

    def _take_share(self, host_id: str, connection: Connection, only: Collection[str] | None = None) -> Collection[str]:
        host, (hosts, now) = store.lock_host(connection, host_id), _list_hosts(connection)
        takers = {one.id for one in hosts if self._is_taker(one, now)}
        if host is None or not self._is_gone(host, now) or self._host_id not in takers or self._runtime is None:
            return ()  # it is back, or another server has forgotten it, or this one is late itself
        work.release_operations(connection, host.id)
        taken = take_agents(connection, host.id, self._host_id, self._runtime, len(takers), only)
        # Of all agents that are not its own any more: one may have got an operation while it was taken.
        for subject in work.list_host_subjects(connection, host.id):
            agent_id = subject.partition("/")[0]
            if (owner := find_host_id(connection, agent_id) or self._host_id) != host.id:
                work.transfer_operations(connection, agent_id, owner)
        is_over = host.seen_at is None or host.seen_at < now - _RETENTION
        if is_over and not work.list_host_subjects(connection, host.id) and forget_host(connection, host.id):
            store.delete_host(connection, host.id)
        return taken


def _list_hosts(connection: Connection) -> tuple[Sequence[Host], datetime]:
    """Return all hosts, and the time of the database."""
    return store.list_hosts(connection), read_database_time(connection)
