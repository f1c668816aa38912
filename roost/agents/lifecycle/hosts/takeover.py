"""Takeover of the agents of servers that are gone, where any server can serve them (decision 0060)."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.hosts import store
from roost.agents.lifecycle.hosts.model import HEARTBEAT_SECONDS, HOST_TIMEOUT, Host
from roost.agents.registry.repository import find_host_id, forget_host, take_agents
from roost.core import clock, log
from roost.core.db import Database, read_database_time
from roost.core.periodic import PeriodicTask

_LOOK_SECONDS = 2.0
_GRACE_SECONDS = HOST_TIMEOUT.total_seconds()
_RETENTION = timedelta(hours=1)
"""Age of the last heartbeat at which a server without agents is forgotten; one that returns later ends itself."""
_log = log.get_logger("takeover")


class AgentTakeover:
    """Gives this server its share of the agents of servers that are gone.

    shared_runtime: name of this server's default runtime if it is shared; without it, nothing is taken.
    """

    def __init__(self, db: Database, host_id: str, shared_runtime: str | None) -> None:
        self._db, self._host_id, self._runtime = db, host_id, shared_runtime
        self._on_taken: Callable[[Collection[str]], object] = lambda _: None
        self._looked_at: datetime | None = None
        self._believes_at = float("-inf")
        self._task = PeriodicTask("takeover", self.look, _LOOK_SECONDS)

    def start(self, on_taken: Callable[[Collection[str]], object]) -> None:
        """Look every two seconds; `on_taken` gets the ids of agents that are this server's from then on."""
        self._on_taken = on_taken
        if self._runtime is not None:
            self._task.start()

    async def stop(self) -> None:
        """Take no more agents. Idempotent."""
        await self._task.stop()

    async def look(self) -> None:
        """Take a share of the agents of each server that is gone."""
        hosts, now = await self._db.read(
            lambda connection: (store.list_hosts(connection), read_database_time(connection))
        )
        if self._looked_at is None or abs(now - self._looked_at) > timedelta(seconds=HEARTBEAT_SECONDS):
            # This server is new, or hung or had no database, perhaps with all others, or the database's clock was set:
            # the others have to show themselves first.
            self._believes_at = clock.monotonic_seconds() + _GRACE_SECONDS
        self._looked_at = now
        for host in hosts:
            if self._is_gone(host, now):
                taken = await self._db.write(partial(self._take_share, host.id))
                if taken:
                    _log.info("agents.taken_over", agents=len(taken), server=host.id)
                    self._on_taken(taken)

    def _is_gone(self, host: Host, now: datetime) -> bool:
        if host.id == self._host_id or host.shared_runtime != self._runtime:
            return False
        is_silent = not host.is_running(now) and clock.monotonic_seconds() >= self._believes_at
        return host.seen_at is None or is_silent

    def _take_share(self, host_id: str, connection: Connection) -> Collection[str]:
        host, now = store.lock_host(connection, host_id), read_database_time(connection)
        present = [one for one in store.list_hosts(connection) if one.is_running(now)]
        takers = {one.id for one in present if one.shared_runtime == self._runtime}
        if host is None or not self._is_gone(host, now) or self._host_id not in takers or self._runtime is None:
            return ()  # it is back, or another server has forgotten it, or this one is late itself
        work.release_operations(connection, host.id)
        taken = take_agents(connection, host.id, self._host_id, self._runtime, len(takers))
        # Of all agents that are not its own any more: one may have got an operation while it was taken.
        for subject in work.list_host_subjects(connection, host.id):
            agent_id = subject.partition("/")[0]
            if (owner := find_host_id(connection, agent_id) or self._host_id) != host.id:
                work.transfer_operations(connection, agent_id, owner)
        is_over = host.seen_at is None or host.seen_at < now - _RETENTION
        if is_over and not work.list_host_subjects(connection, host.id) and forget_host(connection, host.id):
            store.delete_host(connection, host.id)
        return taken
