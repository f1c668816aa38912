"""Topics of the commits of other servers, which PostgreSQL passes on by LISTEN and NOTIFY (decision 0063)."""

import asyncio
from typing import Any

from roost.core import clock, log
from roost.core.db.database import Database
from roost.core.db.notifications import ANY_TOPIC, CHANNEL, notify_servers, parse_payload
from roost.core.periodic import PeriodicTask
from roost.core.problem import ServiceUnavailable

_CONNECT_SECONDS = 5.0
_QUIET_SECONDS = 10.0
_RETRY_SECONDS = 60.0

_log = log.get_logger("database")


class ChangeListener:
    """Tells the subscribers of a database what other servers commit; does nothing on SQLite, which has one server.

    It listens at a connection of its own. While it has none, or one at which notifications do not arrive, it tells
    them every few seconds that anything may have changed, and once more when they arrive again.
    """

    def __init__(self, db: Database, *, poll_seconds: float = 2.0, echo_seconds: float = 10.0) -> None:
        """`echo_seconds`: time for a notification to arrive that this server sends to itself."""
        self._db = db
        self._echo_seconds = echo_seconds
        self._listen_task = PeriodicTask("database notifications", self._listen, poll_seconds)
        self._poll_task = PeriodicTask("database changes", self._poll, poll_seconds)
        self.is_listening = False

    def start(self) -> None:
        if not self._db.is_sqlite:
            self._listen_task.start()
            self._poll_task.start(self._echo_seconds)

    async def stop(self) -> None:
        """Idempotent."""
        await self._listen_task.stop()
        await self._poll_task.stop()

    async def _poll(self) -> None:
        if not self.is_listening:
            self._tell(frozenset({ANY_TOPIC}))

    async def _listen(self) -> None:
        """Listen until the connection is lost."""
        driver, arguments = self._db.driver, self._db.connect_arguments
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                connection = await driver.AsyncConnection.connect(**arguments, autocommit=True)
            async with connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                await self._receive_all(connection)
        except (driver.Error, OSError, TimeoutError, ServiceUnavailable) as error:
            if self.is_listening:  # no warning: the one of the database's outage says it, if that is the reason
                _log.info("database.notifications_lost", reason=str(error))
        finally:
            self.is_listening = False

    async def _receive_all(self, connection: Any) -> None:
        """Tell the subscribers what arrives, for as long as what this server sends to itself arrives, too."""
        while await self._hears_itself(connection):
            if not self.is_listening:
                self.is_listening = True
                _log.info("database.notifications_received")
                self._tell(frozenset({ANY_TOPIC}))
            async for notification in connection.notifies(timeout=_QUIET_SECONDS):
                self._receive(notification.payload)
        if self.is_listening:
            raise TimeoutError("a notification of this server to itself did not arrive")
        await connection.execute("UNLISTEN *")  # the connection of the pooler may live on
        reason = "changes of other servers are polled; connect past a pooler that gives connections to transactions"
        _log.warning("database.notifications_missing", reason=reason)
        await asyncio.sleep(_RETRY_SECONDS)

    async def _hears_itself(self, connection: Any) -> bool:
        """Send a notification by another connection; return whether it arrives."""
        await self._db.write(lambda other: notify_servers(other, self._db.process_id, ()))
        has_heard, deadline = False, clock.monotonic_seconds() + self._echo_seconds
        while not has_heard and (left := deadline - clock.monotonic_seconds()) > 0:
            # The loop ends by itself: one that is left early loses what arrived together with the notification.
            async for notification in connection.notifies(timeout=left, stop_after=1):
                has_heard |= not self._receive(notification.payload)
        return has_heard

    def _receive(self, payload: str) -> bool:
        """Tell the subscribers what another server sent; return whether it was another one."""
        sender, topics = parse_payload(payload)
        if sender == self._db.process_id:
            return False
        if topics:
            self._tell(topics)
        return True

    def _tell(self, topics: frozenset[str]) -> None:
        self._db.notify_subscribers(topics)
