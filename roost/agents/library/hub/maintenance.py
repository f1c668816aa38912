"""The skills that come with Roost, published for the operator's own tenant, and the upkeep of the hub."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable

from roost.agents.library.hub import store
from roost.agents.library.hub.clawhub.service import HubUploads
from roost.agents.library.hub.model import HubListing, HubVersion, Publication, fingerprint_of
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.bundle import Bundle, read_files
from roost.agents.library.skills.model import BUNDLED_OWNER
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.verdict.rules import rules_version
from roost.core import log
from roost.core.db import Database, LeasedTask
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.identity import tenants
from roost.identity.model import DEFAULT_TENANT

INTERVAL = timedelta(minutes=5)
_AUTHOR, _CATEGORY = "Roost", "basics"
_BATCH_SIZE = 100
_log = log.get_logger("hub")


class HubMaintenance:
    """The periodic tasks; the first run, at the server's start, publishes the skills that come with Roost.

    All servers of a database publish, and a version is published once; one of them checks versions again.
    """

    def __init__(
        self,
        db: Database,
        hub: HubService,
        publisher: HubPublisher,
        uploads: HubUploads,
        skills: SkillService,
        catalogue: Sequence[Bundle],
    ) -> None:
        self._db = db
        self._hub = hub
        self._publisher = publisher
        self._uploads = uploads
        self._skills = skills
        self._catalogue = catalogue
        self._has_published = False
        self._task = PeriodicTask("hub maintenance", self.run, INTERVAL.total_seconds())
        check = partial(self.check_outdated, rules_version())
        self._check_task = LeasedTask(db, "hub checks", check, INTERVAL.total_seconds())

    def start(self) -> None:
        self._task.start()
        self._check_task.start()

    async def stop(self) -> None:
        """Idempotent. The next start does the rest of a run that was cancelled."""
        await self._task.stop()
        await self._check_task.stop()

    async def run(self) -> None:
        if not self._has_published:
            self._has_published = await self.publish_catalogue(self._catalogue)
        await self._uploads.expire()

    async def publish_catalogue(self, bundles: Sequence[Bundle]) -> bool:
        """Publish what is missing or has changed; return whether all of it is published now."""
        operator = await self._db.write(lambda connection: tenants.ensure_tenant(connection, DEFAULT_TENANT))
        publication = Publication(category=_CATEGORY, author_name=_AUTHOR, featured=True, is_bundled=True)
        is_complete = True
        for bundle in bundles:
            try:
                await self._publisher.publish_missing(operator.id, bundle, publication)
            except Problem as problem:  # such as a full disk: the next run tries again
                _log.warning("hub_skill.not_published", reason=problem.message)
                is_complete = False
        return is_complete

    async def check_outdated(self, current: str) -> int:
        """Check all published versions that were checked by other rules; return their number."""
        after, count = "", 0
        while versions := await self._list_outdated(current, after):
            after = versions[-1].id
            for version in versions:
                try:
                    await self._check_again(version)
                except Problem as problem:
                    _log.warning("hub_skill.check_failed", cid=version.cid, reason=problem.message)
                else:
                    count += 1
        return count

    async def _list_outdated(self, current: str, after: str) -> Sequence[HubVersion]:
        return await self._db.read_long(lambda connection: store.list_outdated(connection, current, after, _BATCH_SIZE))

    async def _check_again(self, version: HubVersion) -> None:
        """Check a version by the present rules, and store the verdict. Raises as `HubService.read_bundle`."""
        verdict = await self._skills.checker.check(version.tenant_id, await self._hub.read_bundle(version))
        await self._db.write(lambda connection: store.set_verdict(connection, version.id, verdict))


def is_bundled(found: HubListing) -> bool:
    """Return whether the files of a version come with this release of Roost.

    The owner alone does not tell: earlier releases published the operator's own skills under it.
    """
    return found.skill.owner == BUNDLED_OWNER and found.version.fingerprint in _list_fingerprints()


def read_catalogue() -> Sequence[Bundle]:
    """Read the skills of the package."""
    folder = resources.files("roost.agents.library.hub") / "catalogue"
    return [read_files(_walk_files(one, "")) for one in _list_sorted(folder) if one.is_dir()]


def _walk_files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for one in _list_sorted(folder):
        if one.is_file():
            yield path + one.name, one.read_bytes()
        elif one.name != "__pycache__":
            yield from _walk_files(one, f"{path}{one.name}/")


def _list_sorted(folder: Traversable) -> Sequence[Traversable]:
    return sorted(folder.iterdir(), key=lambda one: one.name) if folder.is_dir() else []


@cache
def _list_fingerprints() -> frozenset[str]:
    return frozenset(map(fingerprint_of, read_catalogue()))
