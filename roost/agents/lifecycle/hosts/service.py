"""Registration of this server, with a heartbeat, and removal of servers that are lost for good (decision 0018)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.hosts import store
from roost.agents.lifecycle.hosts.model import HEARTBEAT_SECONDS, Host, HostIdentity, HostNotFound, HostRunning
from roost.agents.registry.repository import abandon_host
from roost.core import clock, log
from roost.core.db import Database, publish_on_commit, read_database_time
from roost.core.periodic import PeriodicTask
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive

_CHECK_SECONDS = 1.0
_CERTIFICATE = "servers"
LEAVING_TOPIC = "hosts/leaving"

_log = log.get_logger("hosts")


class HostService:
    """Registration of one server.

    on_lost: called when another process has taken its identity over. address, shared_runtime: as in `Host`.
    """

    def __init__(
        self,
        db: Database,
        identity: HostIdentity,
        on_lost: Callable[[], object],
        address: str | None = None,
        shared_runtime: str | None = None,
    ) -> None:
        self._db = db
        self._identity = identity
        self._address, self._shared_runtime = address, shared_runtime
        self._on_lost = on_lost
        self._written_at = float("-inf")
        self._is_lost = False
        self._heartbeat = PeriodicTask("host heartbeat", self._record_heartbeat, HEARTBEAT_SECONDS)

    async def start(self) -> None:
        """Register this server. Raises HostRunning if a copy of its data folder is in use with the same database."""
        identity = self._identity

        def register(connection: Connection) -> None:
            present, now = store.lock_host(connection, identity.id), read_database_time(connection)
            # The caller has locked the data folder, so an earlier server of the same folder has ended. A copy of the
            # folder includes a SQLite database, so the two have nothing in common.
            if (
                present is not None
                and present.session != identity.session
                and present.is_running(now)
                and not self._db.is_sqlite
            ):
                raise HostRunning(
                    f"{identity.folder} is a copy of the data folder of a running server ({present.name}, "
                    f"{present.folder}) with the same database. Stop that server, or start with an empty data folder."
                )
            host = Host(**vars(identity), started_at=now, seen_at=now, address=self._address)
            store.replace_host(connection, replace(host, shared_runtime=self._shared_runtime))

        await self._db.write(register)
        self._heartbeat.start(delay=HEARTBEAT_SECONDS)

    async def mark_leaving(self) -> None:
        """Let other servers take the agents of this one's shared runtime, while it goes on."""
        identity = self._identity

        def mark(connection: Connection) -> None:
            store.mark_leaving(connection, identity.id, identity.session)
            publish_on_commit(connection, LEAVING_TOPIC)

        await self._db.write(mark)

    async def stop(self) -> None:
        """Record the end of this server. Idempotent."""
        await self._heartbeat.stop()
        await self._set_seen(is_running=False)

    async def check_database(self) -> None:
        """Check that the database can be written, with at most one write a second. Raises DatabaseWriteFailed."""
        await self._db.ping()
        if clock.monotonic_seconds() - self._written_at > _CHECK_SECONDS:
            await self._set_seen(is_running=True)

    async def _record_heartbeat(self) -> None:
        if not self._is_lost and not await self._set_seen(is_running=True):
            self._is_lost = True  # a second call could end the process before its agents are stopped
            _log.error("host.identity_lost", host=self._identity.id)
            self._on_lost()

    async def _set_seen(self, *, is_running: bool) -> bool:
        identity = self._identity

        def set_seen(connection: Connection) -> bool:
            seen_at = read_database_time(connection) if is_running else None
            return store.set_seen(connection, identity.id, identity.session, seen_at)

        is_ours = await self._db.write(set_seen)
        self._written_at = clock.monotonic_seconds()
        return is_ours


async def load_certificate(db: Database, sealer: Sealer, make: Callable[[], Sensitive[str]]) -> Sensitive[str]:
    """Return the certificate with its key that all servers show each other; the first of them makes it.

    It is sealed in the database: who can open it has the keys of the deployment anyway. Raises UnsealFailed.
    """
    place = store.CERTIFICATE_DATA.format(id=_CERTIFICATE)
    made = sealer.seal(make().reveal().encode(), place)
    sealed = await db.write(lambda connection: store.ensure_certificate(connection, _CERTIFICATE, made))
    return Sensitive(sealer.open(sealed, place).reveal().decode())


def list_hosts(connection: Connection) -> Sequence[Host]:
    """List all hosts, oldest first."""
    return store.list_hosts(connection)


def remove_host(connection: Connection, host_id: str) -> int:
    """Remove a host that does not come back; return the number of its agents, which have no host then.

    Raises HostNotFound, HostRunning.
    """
    host = store.lock_host(connection, host_id)
    if host is None:
        raise HostNotFound
    if host.is_running(read_database_time(connection)):
        raise HostRunning("The host is running, or was a moment ago; stop it and wait 30 s")
    store.delete_host(connection, host_id)
    work.abandon_operations(connection, host_id)
    return abandon_host(connection, host_id)
