"""Verdicts about bundles on a server: none is made twice, and no tenant makes two at a time (decision 0049)."""

import hashlib
from collections.abc import Sequence
from datetime import timedelta

from roost.agents.library.skills import model, store
from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.model import SkillVersion
from roost.agents.library.skills.stored_bundle import read_bundle
from roost.agents.library.skills.verdict import Verdict, check_bundle
from roost.agents.library.skills.verdict.rules import rules_version
from roost.core import log
from roost.core.db import Database, LeasedTask
from roost.core.machine.threads import FairThreads
from roost.core.problem import Problem
from roost.core.ttl_cache import TTLCache
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import Cid

INTERVAL = timedelta(hours=1)
_BATCH_SIZE = 100
_LIFETIME = 3600.0
_SIZE = 200
"""A verdict has up to 100 kB."""
_log = log.get_logger("skills")


class SkillChecker:
    """Checks bundles beside the event loop, one at a time, and the tenants take turns.

    A check takes at most `CPU_LIMIT` seconds, so that a process of its own would start for little. When the rules have
    changed, a periodic task of one server checks stored versions again.
    """

    def __init__(self, db: Database, reader: ContentReader) -> None:
        self._db = db
        self._reader = reader
        self._threads = FairThreads(1, "skill-checks")
        self._verdicts = TTLCache[bytes, Verdict](_LIFETIME, _SIZE)
        self._task = LeasedTask(db, "skill checks", self.check_outdated, INTERVAL.total_seconds())

    def start(self) -> None:
        """Start the periodic task, whose first run is at once."""
        self._task.start()

    async def stop(self) -> None:
        """Idempotent. The next start does the rest of a run that was cancelled."""
        await self._task.stop()

    async def check(self, tenant_id: str, bundle: Bundle, stored: Verdict | None = None) -> Verdict:
        """Return the verdict about files; `stored` is the one that was stored with them, if there is one."""
        if stored is not None and stored.rules_version == rules_version():
            return stored
        return await self._threads.run(tenant_id, lambda: self._check_or_recall(bundle))

    async def check_outdated(self) -> int:
        """Check all versions that were checked by other rules; return their number."""
        after, count, current = "", 0, rules_version()
        while versions := await self._list_outdated(current, after):
            after = versions[-1].id
            for version in versions:
                try:
                    verdict = await self._check_again(version)
                except Problem as problem:
                    _log.warning("skill.check_failed", cid=version.cid, reason=problem.message)
                    continue
                count += 1
                if verdict.level is not version.verdict.level:
                    _log.warning("skill.verdict_changed", cid=version.cid, verdict=verdict.level)
        return count

    async def _list_outdated(self, current: str, after: str) -> Sequence[SkillVersion]:
        return await self._db.read_long(lambda connection: store.list_outdated(connection, current, after, _BATCH_SIZE))

    async def _check_again(self, version: SkillVersion) -> Verdict:
        """Check a stored version by the present rules, and store the verdict. Raises the errors of `read_bundle`."""
        scope = model.content_scope(version.tenant_id)
        bundle = await read_bundle(self._reader, scope, Cid.parse(version.cid))
        verdict = await self.check(version.tenant_id, bundle)
        await self._db.write(lambda connection: store.set_verdict(connection, version.id, verdict))
        return verdict

    def _check_or_recall(self, bundle: Bundle) -> Verdict:
        digest = _digest_of(bundle)
        verdict = self._verdicts.get(digest)
        if verdict is None:
            verdict = check_bundle(bundle)
            self._verdicts.put(digest, verdict)
        return verdict


def _digest_of(bundle: Bundle) -> bytes:
    """Hash the paths and the contents, which are all that a verdict depends on."""
    digest = hashlib.sha256()
    for path, file in bundle.files.items():
        for part in (path.encode(), file.content):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
    return digest.digest()
