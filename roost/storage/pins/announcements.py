"""Announce public files to the public network; withdraw a CID with its last public file.

Every change of a public file adds an operation in the same transaction. The operation looks at the files when it runs,
so the order of changes, restarts and repetitions do not matter. Content is read with the public scope: private content
is not found, exactly as content that is not stored.
"""

from datetime import datetime, timedelta

from roost import work
from roost.core import clock, log
from roost.core.db import Connection, Database
from roost.drivers.network.contract import NetworkAnnouncer, NetworkRefused, SourceFailed
from roost.storage.content.car_export import export_tree
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File, FileEvent
from roost.storage.files.service import FileService, is_public, list_public_cids
from roost.work import JSON, ClaimedOperation

RECONCILE, SURVEY = "offers.settle", "offers.survey"
"""Kinds of operations; rows in the database have these names."""
RETRIES = 10_000
"""With the pauses between attempts, enough for a network that is unreachable for a month."""
_REFUSALS = 5
"""Refusals after which an operation fails; the next survey adds it again."""
_SURVEY_EVERY = timedelta(days=1)
_SURVEY_SUBJECT = "offers"
_CONCURRENCY, _PAGE = 4, 500
_PAUSE = timedelta(seconds=5)

_log = log.get_logger("announcements")


class Announcements:
    def __init__(
        self,
        db: Database,
        queue: work.OperationWorker,
        files: FileService,
        reader: ContentReader,
        network: NetworkAnnouncer,
    ) -> None:
        self._db = db
        self._reader = reader
        self._network = network
        self._running = 0
        queue.handle(RECONCILE, self.reconcile, retries=RETRIES)
        queue.handle(SURVEY, self.survey, retries=RETRIES, on_failure=_add_next_survey)
        files.add_listener(_changed)

    async def start(self) -> None:
        """Start the daily survey, unless it is queued already."""

        def begin(connection: Connection) -> None:
            if not work.is_subject_busy(connection, _SURVEY_SUBJECT):
                work.add_operation(connection, SURVEY, _SURVEY_SUBJECT)

        await self._db.write(begin)

    async def reconcile(self, claim: ClaimedOperation) -> JSON:
        """Announce or withdraw a CID. Raises SourceFailed, NetworkRefused, ContentNotFound, ContentDamaged."""
        cid = Cid.parse(claim.payload["cid"])
        if self._running >= _CONCURRENCY:
            await claim.guard(lambda connection: _add_reconciliation(connection, cid, clock.utc_now() + _PAUSE))
            return None
        self._running += 1
        try:
            await self._reconcile(cid)
        except NetworkRefused as refused:
            if claim.failures >= _REFUSALS:
                raise
            raise SourceFailed(refused.message) from None
        finally:
            self._running -= 1
        return None

    async def survey(self, claim: ClaimedOperation) -> JSON:
        """Add an operation for each public CID that the network does not have."""
        after = ""
        while page := await self._db.read(lambda connection, after=after: list_public_cids(connection, after, _PAGE)):
            for cid in dict.fromkeys(Cid.parse(text).v1() for text in page):
                if not await self._network.has(str(cid)):
                    await claim.guard(lambda connection, cid=cid: _add_reconciliation(connection, cid))
            after = page[-1]
        await claim.guard(_add_next_survey)
        return None

    async def _reconcile(self, cid: Cid) -> None:
        if await self._db.read(lambda connection: is_public(connection, cid)):
            scope = ContentScope(ContentNetwork.PUBLIC)
            await self._network.announce(str(cid), lambda: export_tree(self._reader, scope, cid))
            _log.info("cid.announced", cid=str(cid))
        else:
            await self._network.withdraw(str(cid))
            _log.info("cid.withdrawn", cid=str(cid))


def _add_next_survey(connection: Connection, *_: object) -> None:
    next_time = clock.utc_now() + _SURVEY_EVERY
    work.add_operation(connection, SURVEY, _SURVEY_SUBJECT, run_after=next_time)


def _changed(connection: Connection, change: FileEvent, file: File, _before: File | None) -> None:
    if file.network is ContentNetwork.PUBLIC and change is not FileEvent.UPDATED:
        _add_reconciliation(connection, Cid.parse(file.cid).v1())


def _add_reconciliation(connection: Connection, cid: Cid, at: datetime | None = None) -> None:
    work.add_operation(connection, RECONCILE, f"offer/{cid}", {"cid": str(cid)}, run_after=at)
