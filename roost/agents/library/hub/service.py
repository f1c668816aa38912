"""Browse the hub and install from it."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.agents.library.hub import model, store
from roost.agents.library.hub.errors import HubSkillNotFound, HubVersionNotFound, LibrarySkillConflict
from roost.agents.library.hub.model import HubCursor, HubFilter, HubListing, HubReference, HubSkill, HubVersion
from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.errors import SkillNotFound
from roost.agents.library.skills.model import (
    LibrarySkill,
    NewSkill,
    check_acknowledged,
    check_version,
    content_scope,
    parse_cid_spellings,
)
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.stored_bundle import read_bundle
from roost.agents.library.skills.verdict import Verdict
from roost.core import clock, log
from roost.core.db import Database
from roost.core.problem import NotFound
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid

WantedVersion = tuple[HubReference, str | None]
"""A skill, and the number or the CID of a version of it; None for the newest."""
_log = log.get_logger("hub")


class HubService:
    def __init__(self, db: Database, content: ContentService, skills: SkillService) -> None:
        self._db = db
        self._content = content
        self._skills = skills

    async def search(
        self, chosen: HubFilter, cursor: str | None, limit: int
    ) -> tuple[Sequence[HubListing], str | None]:
        """List a page of skills in the order of the filter, with the next cursor. Raises InvalidHubCursor."""
        after = HubCursor.parse(cursor, chosen.sort) if cursor else None
        # Words are searched in all skills: strangers take turns, and the event loop does not wait for them.
        found = await self._db.read_long(lambda connection: store.search_skills(connection, chosen, after, limit + 1))
        if len(found) <= limit:
            return found, None
        return found[:limit], HubCursor.after(found[limit - 1].skill, chosen.sort).token()

    async def rank(self, query: str, limit: int) -> Sequence[HubListing]:
        """List the skills that fit a query best. Raises InvalidHubRequest."""
        chosen = HubFilter(terms=model.parse_terms(query))
        return await self._db.read_long(
            lambda connection: store.rank_skills(connection, chosen, query.strip().lower(), limit)
        )

    async def list_categories(self) -> Sequence[str]:
        return await self._db.read(store.list_categories)

    async def find_all(self, wanted: Sequence[WantedVersion]) -> Sequence[HubListing | NotFound]:
        """Return skills with their newest versions, or those of a number or a CID, in as many queries as for one."""
        return await self._db.read_long(lambda connection: _find_all(connection, wanted))

    async def get(self, reference: HubReference, version: str | None = None) -> HubListing:
        """Return a skill with its newest version, or that of a number or a CID.

        Raises HubSkillNotFound, HubVersionNotFound.
        """
        return await self._db.read(lambda connection: _find_one(connection, reference, version))

    async def get_detail(
        self, reference: HubReference, version: str | None = None
    ) -> tuple[HubListing, Sequence[HubVersion]]:
        """Return what `get` returns with the body, and all versions, last published first. Raises as `get`."""

        def read(connection: Connection) -> tuple[HubListing, Sequence[HubVersion]]:
            found = _find_one(connection, reference, version)
            body = store.get_body(connection, found.version.id)
            versions = store.list_versions(connection, found.skill.id)
            return replace(found, version=replace(found.version, body=body)), versions

        return await self._db.read_long(read)

    async def find_by_fingerprint(self, skill: HubSkill, fingerprint: str) -> HubVersion | None:
        """Return the last published version of a skill whose files have a fingerprint."""
        return await self._db.read(lambda connection: store.find_by_fingerprint(connection, skill.id, fingerprint))

    async def read_bundle(self, version: HubVersion) -> Bundle:
        """Read the files of a version, verified by its CID. Raises the errors of `read_bundle`."""
        return await read_bundle(self._content.reader, content_scope(version.tenant_id), Cid.parse(version.cid))

    async def install(
        self, tenant_id: str, reference: str, version: str | None = None, *, acknowledged: bool = False
    ) -> LibrarySkill:
        """Put a version of a skill, by its id or name, into a tenant's library.

        Raises HubSkillNotFound, HubVersionNotFound, DangerousSkill, LibrarySkillConflict, SkillVersionConflict.
        """
        found = await self.get(model.parse_reference(reference), version)
        bundle = await self.read_bundle(found.version)
        installed = await self.install_bundle(
            tenant_id,
            bundle,
            NewSkill(found.version.version, keeps_version=version != found.version.version, slug=found.skill.slug),
            found.skill.name,
            found.version.cid,
            acknowledged=acknowledged,
            verdict=await self._skills.checker.check(tenant_id, bundle, found.version.verdict),
        )
        await self._add_install(found.skill.id, tenant_id)
        _log.info("hub_skill.installed", slug=found.skill.slug, version=found.version.version)
        return installed

    async def install_missing(self, tenant_id: str, reference: str) -> LibrarySkill:
        """Return a skill of the library by its CID or slug, installed from the hub if the library lacks it.

        Raises as `install`.
        """
        if present := await self._find_in_library(tenant_id, reference):
            return present
        cids = parse_cid_spellings(reference)
        if not cids:
            skill = (await self.get(model.parse_reference(reference))).skill
            return await self._find_in_library(tenant_id, skill.slug) or await self.install(tenant_id, skill.id)
        if (skill := await self._db.read(lambda connection: store.find_by_cid(connection, cids))) is None:
            raise HubSkillNotFound
        return await self.install(tenant_id, skill.id, cids[0])

    async def install_bundle(
        self,
        tenant_id: str,
        bundle: Bundle,
        new: NewSkill,
        name: str,
        cid: str | None,
        *,
        acknowledged: bool,
        verdict: Verdict,
    ) -> LibrarySkill:
        """Register files from a hub, unless the library has that CID. Raises as `install`."""
        check_acknowledged(name, verdict, acknowledged=acknowledged)
        if cid is not None and (present := await self._find_in_library(tenant_id, cid)):
            check_version(name, present.version.version, None if new.keeps_version else new.version)
            return present
        for one in await self._skills.list(tenant_id):
            if one.skill.name == name and one.skill.slug != new.slug:
                raise LibrarySkillConflict(f"{LibrarySkillConflict.message}: {name}, {one.skill.id}")
        return await self._skills.register(tenant_id, bundle, new, stored=verdict)

    async def count_install(self, tenant_id: str, reference: HubReference) -> None:
        """Count an installation by another client. Raises HubSkillNotFound."""
        await self._add_install((await self.get(reference)).skill.id, tenant_id)

    async def _add_install(self, hub_skill_id: str, tenant_id: str) -> None:
        at = clock.utc_now()
        await self._db.write(lambda connection: store.add_install(connection, hub_skill_id, tenant_id, at))

    async def _find_in_library(self, tenant_id: str, reference: str) -> LibrarySkill | None:
        try:
            return await self._skills.find(tenant_id, reference)
        except SkillNotFound:
            return None


def _find_one(connection: Connection, reference: HubReference, version: str | None) -> HubListing:
    (found,) = _find_all(connection, [(reference, version)])
    if isinstance(found, NotFound):
        raise found
    return found


def _find_all(connection: Connection, wanted: Sequence[WantedVersion]) -> Sequence[HubListing | NotFound]:
    skills = store.find_skills(connection, {reference for reference, _ in wanted})
    known = [(skills[reference], version) for reference, version in wanted if reference in skills]
    versions = store.find_versions(
        connection,
        {skill.latest_id for skill, version in known if version is None},
        {(skill.id, version) for skill, version in known if version is not None},
        {(skill.id, cid) for skill, version in known if version is not None for cid in parse_cid_spellings(version)},
    )
    return [_choose(skills.get(reference), versions, version) for reference, version in wanted]


def _choose(skill: HubSkill | None, versions: Sequence[HubVersion], wanted: str | None) -> HubListing | NotFound:
    if skill is None:
        return HubSkillNotFound()
    own = (version for version in versions if version.hub_skill_id == skill.id)
    found = next((version for version in own if _is_meant(version, skill, wanted)), None)
    return HubVersionNotFound() if found is None else HubListing(skill, found)


def _is_meant(version: HubVersion, skill: HubSkill, wanted: str | None) -> bool:
    if wanted is None:
        return version.id == skill.latest_id
    return wanted == version.version or version.cid in parse_cid_spellings(wanted)
