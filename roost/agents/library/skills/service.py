"""The library of a tenant: register skills and their versions, list, find and delete them.

A version holds a pack of the content store with its folder. The tenant's row is locked while its library changes, so
that names, numbers and limits are exact under parallel calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.agents.library.skills import model, store
from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.checker import SkillChecker
from roost.agents.library.skills.errors import (
    InvalidSkillRequest,
    SkillAttached,
    SkillContentNotFound,
    SkillLimitReached,
    SkillNotFound,
    SkillVersionConflict,
)
from roost.agents.library.skills.model import LibrarySkill, NewSkill, RegisteredSkill, Skill, SkillVersion
from roost.agents.library.skills.skill_file import SkillFile, parse_bundle
from roost.agents.library.skills.stored_bundle import read_bundle, without_marker, write_bundle
from roost.agents.library.skills.verdict import Verdict
from roost.core import clock, ids, log
from roost.core.db import Database, DataChange, record_change
from roost.core.problem import Problem
from roost.identity import tenants
from roost.storage.content.car_export import copy_tree
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork, ContentScope, PackReference
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.service import ContentService, hold_pack, release_packs, replace_damaged
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from roost.storage.files.service import StorageQuota, find_file_cid

_log = log.get_logger("skills")


@dataclass(frozen=True)
class _Registration:
    """A bundle with all that is known of its files, and the skill that it becomes a version of, unless a new one."""

    tenant_id: str
    root: Cid
    bundle: Bundle
    file: SkillFile
    verdict: Verdict
    new: NewSkill
    skill_id: str | None

    @property
    def spellings(self) -> Sequence[str]:
        return [str(one) for one in self.root.spellings()]


class SkillService:
    def __init__(self, db: Database, content: ContentService, quota: StorageQuota) -> None:
        self._db = db
        self._content = content
        self._quota = quota
        self.checker = SkillChecker(db, content.reader)

    async def list(self, tenant_id: str) -> Sequence[LibrarySkill]:
        """List the tenant's skills with their newest versions, the last registered first."""
        skills, versions = await self._db.read_long(
            lambda connection: (
                store.list_skills(connection, tenant_id),
                store.list_tenant_versions(connection, tenant_id),
            ),
            tenant_id,
        )
        newest = {one.skill_id: one for one in reversed(model.sort_versions(versions))}
        return [LibrarySkill(skill, newest[skill.id]) for skill in skills]

    async def find(self, tenant_id: str, reference: str) -> LibrarySkill:
        """Return the version of a CID, or the newest one of an id or a slug. Raises SkillNotFound."""
        return await self._db.read(lambda connection: find_skill(connection, tenant_id, reference))

    async def list_versions(self, tenant_id: str, reference: str) -> tuple[Skill, Sequence[SkillVersion]]:
        """Return a skill by its id, slug or CID, and its versions, newest first. Raises SkillNotFound."""

        def read(connection: Connection) -> tuple[Skill, Sequence[SkillVersion]]:
            skill = find_skill(connection, tenant_id, reference).skill
            return skill, store.list_versions(connection, [skill.id])

        skill, versions = await self._db.read(read)
        return skill, model.sort_versions(versions)

    async def register(
        self, tenant_id: str, bundle: Bundle, new: NewSkill, skill_id: str | None = None, stored: Verdict | None = None
    ) -> RegisteredSkill:
        """Store a bundle as a version: of the skill `skill_id`, or of the one with its name or slug, or of a new one.

        stored: a verdict about these files. Content that the library has is the version that it was, which is a
        conflict if another number is given.
        Raises InvalidSkill, InvalidSkillRequest, SkillNotFound, SkillVersionConflict, SkillLimitReached,
        StorageQuotaExceeded, BlobStoreFailed.
        """
        bundle = without_marker(bundle)
        file = parse_bundle(bundle)
        async with self._content.receive(UNIXFS_V1_2025) as receiver:
            root = (await write_bundle(receiver, bundle)).cid
            verdict = await self._check(tenant_id, root, bundle, stored)
            registration = _Registration(tenant_id, root, bundle, file, verdict, new, skill_id)
            return await self._publish(receiver, registration)

    async def register_stored(
        self, tenant_id: str, cid: str, new: NewSkill, skill_id: str | None = None
    ) -> RegisteredSkill:
        """Register a folder that the tenant has stored, and keep a copy of it, under its CID.

        Raises SkillContentNotFound, InvalidBundle, the errors of content that is no folder of files, and those of
        `register`.
        """
        root, scope = await self._find_stored(tenant_id, cid)
        bundle = await read_bundle(self._content.reader, scope, root)
        file, verdict = parse_bundle(bundle), await self._check(tenant_id, root, bundle)
        registration = _Registration(tenant_id, root, bundle, file, verdict, new, skill_id)
        async with self._content.receive_car() as car:
            await copy_tree(self._content.reader, scope, root, car)
            return await self._publish(car, registration)

    async def delete(self, tenant_id: str, reference: str) -> Skill:
        """Delete the version with that CID, or a skill with all versions by its id or slug.

        The last version takes the skill along. Raises SkillNotFound, SkillAttached.
        """

        def remove(connection: Connection) -> Skill:
            tenants.lock_tenant(connection, tenant_id)
            found = find_skill(connection, tenant_id, reference)
            versions = store.list_versions(connection, [found.skill.id])
            is_one = bool(model.parse_cid_spellings(reference))
            removed = [one for one in versions if not is_one or one.id == found.version.id]
            if agents := store.list_agents_of_versions(connection, [one.id for one in removed]):
                raise SkillAttached(f"{SkillAttached.message}: {', '.join(agents)}")
            for one in removed:
                store.delete_version(connection, one.id)
                release_packs(connection, model.holder_of(one.id))
            if len(removed) == len(versions):
                store.delete_skill(connection, found.skill.id)
            record_skill_change(connection, found.skill, "deleted")
            return found.skill

        return await self._db.write(remove)

    async def read_version(self, version: SkillVersion) -> Bundle:
        """Read the files of a version, verified by its CID. Raises the errors of `read_bundle`."""
        scope = model.content_scope(version.tenant_id)
        return await read_bundle(self._content.reader, scope, Cid.parse(version.cid))

    async def _check(self, tenant_id: str, root: Cid, bundle: Bundle, stored: Verdict | None = None) -> Verdict:
        """Return a stored verdict, that of the tenant's version with that content among them, or check the files."""
        if stored is None:
            spellings = [str(one) for one in root.spellings()]
            present = await self._db.read(lambda connection: store.find_by_cid(connection, tenant_id, spellings))
            stored = present.version.verdict if present else None
        return await self.checker.check(tenant_id, bundle, stored)

    async def _find_stored(self, tenant_id: str, text: str) -> tuple[Cid, ContentScope]:
        """Find a stored folder on the tenant's private or public network."""
        try:
            root = Cid.parse(text)
        except InvalidCid:
            raise InvalidSkillRequest(f"skillCid must be a CID, got {text[:100]!r}") from None
        for network in (ContentNetwork.PRIVATE, ContentNetwork.PUBLIC):
            scope = ContentScope(network, tenant_id)
            try:
                await self._content.reader.find_block(scope, root)
            except ContentNotFound:
                continue
            return root, scope
        raise SkillContentNotFound

    async def _publish(self, receiver: ContentReceiver | CarReceiver, registration: _Registration) -> RegisteredSkill:
        """Commit the pack with its version; discard it at once if no version holds it."""
        pack_id = receiver.pack_id
        try:
            registered = await receiver.commit(lambda connection: self._add(connection, pack_id, registration))
        except Problem:
            await self._content.discard(pack_id)
            raise
        if registered.is_new:
            version = registered.version
            _log.info("skill.registered", skill=registered.skill.name, cid=version.cid, verdict=version.verdict.level)
        else:
            await self._content.discard(pack_id)
        return registered

    def _add(self, connection: Connection, pack_id: str, registration: _Registration) -> RegisteredSkill:
        tenant_id, new, skill_id = registration.tenant_id, registration.new, registration.skill_id
        tenant = tenants.lock_tenant(connection, tenant_id)
        present = store.find_by_cid(connection, tenant_id, registration.spellings)
        if present is not None:
            if skill_id not in {None, present.skill.id}:
                raise SkillVersionConflict(f"The content is a version of another skill: {present.skill.id}")
            model.check_version(present.skill.name, present.version.version, None if new.keeps_version else new.version)
            replace_damaged(connection, _reference(pack_id, present.version))
            return RegisteredSkill(present.skill, present.version, is_new=False)
        if new.file_id is not None and find_file_cid(connection, tenant_id, new.file_id) not in registration.spellings:
            raise InvalidSkillRequest(f"fileId must be the id of a stored file with this content, got {new.file_id!r}")
        skill = _find_or_create(connection, registration)
        version = _new_version(connection, skill, registration)
        store.insert_version(connection, version)
        hold_pack(connection, _reference(pack_id, version))
        self._quota.check(connection, tenant)
        record_skill_change(connection, skill, "registered", version=version.version)
        return RegisteredSkill(skill, version, is_new=True)


def find_skill(connection: Connection, tenant_id: str, reference: str) -> LibrarySkill:
    """Return the version of a CID, or the newest one of an id or a slug, with its skill. Raises SkillNotFound."""
    if spellings := model.parse_cid_spellings(reference):
        found = store.find_by_cid(connection, tenant_id, spellings)
    else:
        by_slug = reference.startswith("@")
        skill = (store.find_by_slug if by_slug else store.get_skill)(connection, tenant_id, reference)
        versions = model.sort_versions(store.list_versions(connection, [skill.id])) if skill else ()
        found = LibrarySkill(skill, versions[0]) if skill and versions else None
    if found is None:
        raise SkillNotFound
    return found


def record_skill_change(
    connection: Connection, skill: Skill, action: str, agent_id: str | None = None, version: str | None = None
) -> None:
    """Record a change of a skill, or of its attachment to an agent, in the transaction of the change."""
    data = {"name": skill.name, "action": action, "version": version}
    record_change(connection, DataChange("skill", "changed", skill.id, skill.tenant_id, agent_id, data))


def _reference(pack_id: str, version: SkillVersion) -> PackReference:
    return PackReference(pack_id, model.holder_of(version.id), version.tenant_id, ContentNetwork.PRIVATE)


def _find_or_create(connection: Connection, registration: _Registration) -> Skill:
    tenant_id, name, new = registration.tenant_id, registration.file.name, registration.new
    if (skill_id := registration.skill_id) is not None:
        skill = store.get_skill(connection, tenant_id, skill_id)
        if skill is None:
            raise SkillNotFound
    elif new.slug is not None:
        skill = store.find_by_slug(connection, tenant_id, new.slug)
    else:
        skill = store.find_by_name(connection, tenant_id, name)
    if skill is None:
        if store.count_skills(connection, tenant_id) >= model.LIBRARY_LIMIT:
            raise SkillLimitReached
        skill = Skill(ids.new_id(), tenant_id, name, new.slug, clock.utc_now())
        store.insert_skill(connection, skill)
    elif skill.name != name:
        raise InvalidSkillRequest(f"SKILL.md has the name {name!r}; this skill is {skill.name!r}")
    return skill


def _new_version(connection: Connection, skill: Skill, registration: _Registration) -> SkillVersion:
    """Return the version with its number. Raises SkillVersionConflict, SkillLimitReached."""
    file, new = registration.file, registration.new
    present = [one.version for one in store.list_versions(connection, [skill.id])]
    written = model.complete_version(file.metadata.get("version", ""))
    number = new.version or written or model.next_version(present)
    if number in present:
        raise SkillVersionConflict(f"Skill version conflict: {number} of {skill.name} has other content")
    if len(present) >= model.VERSION_LIMIT:
        raise SkillLimitReached(f"A skill can have at most {model.VERSION_LIMIT} versions")
    warnings = list(file.warnings)
    if new.name not in {None, skill.name}:
        warnings.append(f"the name {new.name!r} of the request is not used; SKILL.md says {skill.name!r}")
    return SkillVersion(
        id=ids.new_id(),
        skill_id=skill.id,
        tenant_id=skill.tenant_id,
        version=number,
        cid=str(registration.root),
        description=file.description if new.description is None else new.description,
        env_vars=new.env_vars,
        file_id=new.file_id,
        wants=file.wants,
        warnings=warnings,
        verdict=registration.verdict,
        files=len(registration.bundle.files),
        size=sum(len(file.content) for file in registration.bundle.files.values()),
        created_at=clock.utc_now(),
    )
