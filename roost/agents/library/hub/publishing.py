"""Publish versions of skills, and withdraw skills.

The hub holds a copy of each published version for its publisher, so that it outlives the version of the library.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.agents.library.hub import model, store
from roost.agents.library.hub.errors import FeaturingRefused, HubLimitReached, HubSkillNotFound, HubVersionConflict
from roost.agents.library.hub.model import HubListing, HubOwner, HubSkill, HubVersion, Publication
from roost.agents.library.skills.bundle import SKILL_FILE, Bundle
from roost.agents.library.skills.model import (
    BUNDLED_OWNER,
    check_acknowledged,
    check_version,
    complete_version,
    content_scope,
    find_version,
    next_version,
    release_key,
)
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.skill_file import SkillFile, parse_bundle
from roost.agents.library.skills.stored_bundle import write_bundle
from roost.agents.library.skills.verdict import Verdict, VerdictLevel
from roost.core import clock, ids, log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_line, sanitize_lines
from roost.identity import tenants
from roost.identity.model import DEFAULT_TENANT, Tenant
from roost.storage.content.model import PackReference
from roost.storage.content.service import ContentService, hold_pack, release_packs
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from roost.storage.files.service import StorageQuota

_REMEDY = "Publish it with a reason, which installers see: roost skills publish --acknowledge REASON"
_log = log.get_logger("hub")


@dataclass(frozen=True)
class _Submission:
    """A bundle with all that is known of its files, as a pack of the content store."""

    file: SkillFile
    verdict: Verdict
    bundle: Bundle
    cid: str
    pack_id: str


class HubPublisher:
    def __init__(self, db: Database, content: ContentService, skills: SkillService, quota: StorageQuota) -> None:
        self._db = db
        self._content = content
        self._skills = skills
        self._quota = quota

    async def get_owner(self, tenant_id: str) -> HubOwner:
        """Return the name under which a tenant publishes, claimed at the first call."""
        found = await self._db.read(lambda connection: store.find_owner(connection, tenant_id))
        return found or await self._db.write(
            lambda connection: _claim_owner(connection, tenants.lock_tenant(connection, tenant_id))
        )

    async def publish(self, tenant_id: str, reference: str, publication: Publication) -> HubListing:
        """Publish a version of the library: the newest, or that of a number or a CID.

        Raises SkillNotFound, SkillVersionNotFound and the errors of `publish_bundle`.
        """
        _, versions = await self._skills.list_versions(tenant_id, reference)
        version = find_version(versions, publication.version) if publication.version else versions[0]
        bundle = await self._skills.read_version(version)
        return await self.publish_bundle(
            tenant_id, bundle, replace(publication, version=version.version), version.verdict
        )

    async def publish_bundle(
        self, tenant_id: str, bundle: Bundle, publication: Publication, stored: Verdict | None = None
    ) -> HubListing:
        """Publish files as a version of the skill that their `SKILL.md` names; `stored` is a verdict about them.

        Raises InvalidSkill, DangerousSkill, SkillVersionConflict, HubVersionConflict, HubLimitReached,
        FeaturingRefused, StorageQuotaExceeded.
        """
        file = parse_bundle(bundle)
        verdict = await self._skills.checker.check(tenant_id, bundle, stored)
        async with self._content.receive(UNIXFS_V1_2025) as receiver:
            root = await write_bundle(receiver, bundle)
            submission = _Submission(file, verdict, bundle, str(root.cid), receiver.pack_id)
            try:
                published, is_new = await receiver.commit(
                    lambda connection: self._add(connection, tenant_id, submission, publication)
                )
            except Problem:
                await self._content.discard(submission.pack_id)
                raise
        if is_new:
            _log.debug("hub_skill.published", slug=published.skill.slug, version=published.version.version)
        else:
            await self._content.discard(submission.pack_id)
        return published

    async def publish_missing(self, tenant_id: str, bundle: Bundle, publication: Publication) -> None:
        """Publish files that come with Roost unless they are published. Raises as `publish_bundle`."""
        known = await self._db.read(lambda connection: store.list_fingerprints(connection, BUNDLED_OWNER))
        if model.fingerprint_of(bundle) not in known:
            await self.publish_bundle(tenant_id, bundle, publication)

    async def unpublish(self, tenant_id: str, hub_skill_id: str) -> HubSkill:
        """Withdraw a skill with all its versions; libraries that have it keep it. Raises HubSkillNotFound."""

        def remove(connection: Connection) -> HubSkill:
            tenants.lock_tenant(connection, tenant_id)
            skill = store.get_skill(connection, hub_skill_id)
            if skill is None or skill.tenant_id != tenant_id:
                raise HubSkillNotFound
            for version in store.list_versions(connection, skill.id):
                release_packs(connection, model.holder_of(version.id))
            store.delete_skill(connection, skill.id)
            return skill

        removed = await self._db.write(remove)
        _log.info("hub_skill.withdrawn", slug=removed.slug)
        return removed

    def _add(
        self, connection: Connection, tenant_id: str, submission: _Submission, publication: Publication
    ) -> tuple[HubListing, bool]:
        """Return the published version, and whether it is new: content can have been published before."""
        tenant = tenants.lock_tenant(connection, tenant_id)
        if publication.featured is not None and tenant.name != DEFAULT_TENANT:
            raise FeaturingRefused
        owner = HubOwner(BUNDLED_OWNER, tenant_id) if publication.is_bundled else _claim_owner(connection, tenant)
        skill = store.find_skill(connection, owner.handle, submission.file.name)
        versions = store.list_versions(connection, skill.id) if skill else ()
        present = next((one for one in versions if one.cid == submission.cid), None)
        if present is not None and skill is not None:
            check_version(skill.name, present.version, publication.version)
            reason = _acknowledge(submission, publication, present.acknowledgement)
            if reason and reason != present.acknowledgement:
                store.set_acknowledgement(connection, present.id, reason)
                present = replace(present, acknowledgement=reason)
            changed = _describe(skill, present if present.id == skill.latest_id else None, publication)
            store.update_skill(connection, changed)
            return HubListing(changed, present), False
        if skill is None and store.count_skills(connection, tenant_id) >= model.PUBLISHED_LIMIT:
            raise HubLimitReached(f"A tenant can publish at most {model.PUBLISHED_LIMIT} skills")
        version = _new_version(tenant_id, skill.id if skill else ids.new_id(), versions, submission, publication)
        newest = max((version, *versions), key=lambda one: release_key(one.version))
        if skill is None:
            skill = _describe(_new_skill(owner, submission.file.name, version), version, publication)
            store.insert_skill(connection, skill)
        else:
            skill = _describe(replace(skill, latest_id=newest.id, updated_at=version.created_at), newest, publication)
            store.update_skill(connection, skill)
        store.insert_version(connection, version)
        scope = content_scope(tenant_id)
        hold_pack(connection, PackReference(submission.pack_id, model.holder_of(version.id), tenant_id, scope.network))
        self._quota.check(connection, tenant)
        return HubListing(skill, version), True


def _claim_owner(connection: Connection, tenant: Tenant) -> HubOwner:
    """Return the tenant's handle: a free one, if it has none yet."""
    if found := store.find_owner(connection, tenant.id):
        return found
    reserved = {BUNDLED_OWNER} if tenant.name == DEFAULT_TENANT else {BUNDLED_OWNER, DEFAULT_TENANT}
    attempt = 0
    while True:
        owner = HubOwner(model.owner_handle(tenant.name, attempt), tenant.id)
        if owner.handle not in reserved and store.add_owner(connection, owner):
            return owner
        attempt += 1


def _new_skill(owner: HubOwner, name: str, version: HubVersion) -> HubSkill:
    return HubSkill(
        id=version.hub_skill_id,
        tenant_id=owner.tenant_id,
        owner=owner.handle,
        name=name,
        description=version.description,
        author_name=owner.handle,
        author_url=None,
        author_logo_url=None,
        category=model.DEFAULT_CATEGORY,
        tags=(),
        featured=False,
        install_count=0,
        latest_id=version.id,
        created_at=version.created_at,
        updated_at=version.created_at,
    )


def _describe(skill: HubSkill, newest: HubVersion | None, publication: Publication) -> HubSkill:
    """Return the skill with the texts of a publication. Raises InvalidHubRequest."""
    texts = publication
    return replace(
        skill,
        description=newest.description if newest else skill.description,
        category=skill.category if texts.category is None else model.parse_label(texts.category, "category"),
        tags=skill.tags if texts.tags is None else model.parse_tags(texts.tags),
        author_name=sanitize_line(texts.author_name or skill.author_name),
        author_url=skill.author_url if texts.author_url is None else model.parse_url(texts.author_url),
        author_logo_url=(
            skill.author_logo_url if texts.author_logo_url is None else model.parse_url(texts.author_logo_url)
        ),
        featured=skill.featured if texts.featured is None else texts.featured,
    )


def _new_version(
    tenant_id: str, hub_skill_id: str, versions: Sequence[HubVersion], submission: _Submission, publication: Publication
) -> HubVersion:
    """Return the version with its number. Raises DangerousSkill, HubVersionConflict, HubLimitReached."""
    present = [one.version for one in versions]
    written = complete_version(submission.file.metadata.get("version", ""))
    number = publication.version or (written if written not in present else None) or next_version(present)
    if number in present:
        raise HubVersionConflict(f"Skill version conflict: {number} is published with other content")
    if len(present) >= model.VERSION_LIMIT:
        raise HubLimitReached(f"A skill can have at most {model.VERSION_LIMIT} versions")
    files = submission.bundle.files
    return HubVersion(
        id=ids.new_id(),
        hub_skill_id=hub_skill_id,
        tenant_id=tenant_id,
        version=number,
        cid=submission.cid,
        description=submission.file.description,
        license=submission.file.license,
        body=model.skill_body(files[SKILL_FILE].content),
        changelog=sanitize_lines(publication.changelog),
        wants=submission.file.wants,
        verdict=submission.verdict,
        fingerprint=model.fingerprint_of(submission.bundle),
        files=len(files),
        size=sum(len(file.content) for file in files.values()),
        created_at=clock.utc_now(),
        acknowledgement=_acknowledge(submission, publication),
    )


def _acknowledge(submission: _Submission, publication: Publication, stored: str | None = None) -> str | None:
    """Return the reason for publishing dangerous files, by default a stored one. Raises DangerousSkill without one."""
    if submission.verdict.level is not VerdictLevel.DANGEROUS:
        return stored
    reason = sanitize_lines(publication.acknowledgement or "").strip() or stored
    check_acknowledged(submission.file.name, submission.verdict, acknowledged=bool(reason), remedy=_REMEDY)
    return reason
