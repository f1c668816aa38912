"""Templates of a tenant and the marketplace of all: a commit is fetched and checked, then stored in one transaction."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection

from roost.agents.library.templates import store
from roost.agents.library.templates.inspection import TemplateInspection
from roost.agents.library.templates.manifest import ManifestFault, TemplateManifest
from roost.agents.library.templates.model import (
    KEPT_VERSIONS,
    TEMPLATE_LIMIT,
    InspectedTemplate,
    InvalidTemplate,
    Submission,
    Template,
    TemplateChanged,
    TemplateFilter,
    TemplateLimitReached,
    TemplateNotFound,
    TemplateSlugTaken,
    TemplateSource,
    TemplateStatus,
    TemplateUpdate,
    TemplateVersion,
)
from roost.core import clock, ids, log
from roost.core.db import Database
from roost.core.page_cursor import PageCursor, split_page
from roost.core.problem import Problem
from roost.drivers.git.remote_contract import RemoteRefs, RemoteRepositories
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.service import ContentService, hold_packs, release_packs
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from roost.storage.files.service import StorageQuota

_log = log.get_logger("templates")


@dataclass(frozen=True)
class TemplateService:
    """Every method that names a repository raises the errors of `RemoteRepositories`."""

    _db: Database
    _remotes: RemoteRepositories
    _content: ContentService
    _quota: StorageQuota
    _engines: Sequence[str]

    async def list_refs(self, tenant_id: str, git_url: str) -> RemoteRefs:
        return await self._remotes.list_refs(_subject(tenant_id), git_url)

    async def validate(self, tenant_id: str, submission: Submission) -> InspectedTemplate:
        """Check a repository without storing anything. Raises InvalidTemplate."""
        async with self._inspect(tenant_id, submission.source) as (_, found, manifest):
            _choose_slug(submission.slug, manifest)
            return found

    async def list(
        self, tenant_id: str | None, wanted: TemplateFilter, cursor: str | None, limit: int
    ) -> tuple[Sequence[Template], Sequence[str], str | None]:
        """Return a page of a tenant's templates, or of all published ones, with all categories and the next cursor.

        Raises InvalidPageToken.
        """
        after = PageCursor.parse(cursor) if cursor else None
        rows, categories = await self._db.read_long(  # words are searched in all templates
            lambda connection: (
                store.list_templates(connection, tenant_id, wanted, after, limit + 1),
                store.list_categories(connection, tenant_id),
            ),
            tenant_id or "",
        )
        page, following = split_page(rows, limit)
        return page, categories, following

    async def get(self, tenant_id: str, template_id: str) -> tuple[Template, TemplateVersion]:
        """Return a template that the tenant may see, with its newest version. Raises TemplateNotFound."""
        return await self._find(tenant_id, lambda connection: store.get_template(connection, template_id))

    async def get_by_slug(self, tenant_id: str, slug: str) -> tuple[Template, TemplateVersion]:
        """As `get`, by slug."""
        return await self._find(tenant_id, lambda connection: store.get_by_slug(connection, slug))

    async def find_latest(self, tenant_id: str, template_id: str) -> int | None:
        """Return the newest version of a template, None if the tenant cannot find it any more."""
        try:
            template, _ = await self.get(tenant_id, template_id)
        except TemplateNotFound:
            return None
        return template.version

    async def submit(self, tenant_id: str, submission: Submission) -> tuple[Template, TemplateVersion]:
        """Fetch, check and store a new template.

        Raises InvalidTemplate, TemplateSlugTaken, TemplateLimitReached, StorageQuotaExceeded, BlobStoreFailed.
        """
        async with self._inspect(tenant_id, submission.source) as (inspection, found, manifest):
            now = clock.utc_now()
            template = _describe(
                found,
                manifest,
                submission.source,
                submission.name,
                id=ids.new_id(),
                tenant_id=tenant_id,
                slug=_choose_slug(submission.slug, manifest),
                status=_status(submission.is_public),
                featured=False,
                version=1,
                created_at=now,
                updated_at=now,
            )
            await self._db.read(lambda connection: _check_new(connection, template))  # before files are stored

            def insert(connection: Connection, stored: Template) -> None:
                _check_new(connection, stored)
                if not store.insert_template(connection, stored):
                    raise TemplateSlugTaken

            return await self._store(inspection, found, template, insert)

    async def update(
        self, tenant_id: str, template_id: str, update: TemplateUpdate
    ) -> tuple[Template, TemplateVersion]:
        """Fetch again and store a new version.

        Raises TemplateNotFound, TemplateChanged and the errors of `submit`.
        """
        before = await self._db.read(lambda connection: _get_own(connection, tenant_id, template_id))
        source = _changed_source(before.source, update)
        async with self._inspect(tenant_id, source) as (inspection, found, manifest):
            template = _describe(
                found,
                manifest,
                source,
                before.name_override if update.name is None else update.name,
                id=before.id,
                tenant_id=tenant_id,
                slug=update.slug or before.slug,
                status=before.status if update.is_public is None else _status(update.is_public),
                featured=before.featured,
                version=before.version + 1,
                created_at=before.created_at,
                updated_at=clock.utc_now(),
            )

            def replace_row(connection: Connection, stored: Template) -> None:
                if _get_own(connection, tenant_id, template_id).version != before.version:
                    raise TemplateChanged
                if not store.update_template(connection, stored):
                    raise TemplateSlugTaken
                store.delete_old_versions(connection, template_id, stored.version - KEPT_VERSIONS + 1)

            return await self._store(inspection, found, template, replace_row)

    async def archive(self, tenant_id: str, template_id: str) -> Template:
        """Archive a template: it is not found any more, its slug is free, its files are released.

        Raises TemplateNotFound.
        """

        def archive(connection: Connection) -> Template:
            tenants.lock_tenant(connection, tenant_id)
            template = _get_own(connection, tenant_id, template_id)
            archived = replace(template, status=TemplateStatus.ARCHIVED, updated_at=clock.utc_now())
            store.archive_template(connection, archived)
            release_packs(connection, _holder(template_id))
            return archived

        return await self._db.write(archive)

    async def _find(
        self, tenant_id: str, get: Callable[[Connection], Template | None]
    ) -> tuple[Template, TemplateVersion]:
        def read(connection: Connection) -> tuple[Template, TemplateVersion]:
            template = get(connection)
            if template is None or (template.tenant_id != tenant_id and template.status is TemplateStatus.DRAFT):
                raise TemplateNotFound
            version = store.get_version(connection, template.id, template.version)
            assert version is not None
            return template, version

        return await self._db.read(read)

    @asynccontextmanager
    async def _inspect(
        self, tenant_id: str, source: TemplateSource
    ) -> AsyncGenerator[tuple[TemplateInspection, InspectedTemplate, TemplateManifest]]:
        """Fetch and check a commit, which can be read within the block. Raises InvalidTemplate."""
        async with self._remotes.fetch(_subject(tenant_id), source.git_url, source.ref) as commit:
            inspection = TemplateInspection(commit, source.path)
            found = await inspection.run()
            if found.manifest is None:
                raise InvalidTemplate(extra=_list_faults(found.errors, found.warnings))
            engine = found.manifest.engine
            if engine is not None and engine not in self._engines:
                fault = ManifestFault("engine", f"must be one of {', '.join(self._engines)}")
                raise InvalidTemplate(extra=_list_faults([fault], found.warnings))
            yield inspection, found, found.manifest

    async def _store(
        self,
        inspection: TemplateInspection,
        found: InspectedTemplate,
        template: Template,
        save: Callable[[Connection, Template], None],
    ) -> tuple[Template, TemplateVersion]:
        """Store the files, then the template and its version in one transaction, which locks the tenant."""
        async with self._content.receive(UNIXFS_V1_2025) as receiver:
            root = await inspection.store_workspace(receiver)
            stored = replace(template, snapshot_cid=str(root.cid.v1()))
            version = _new_version(found, stored, receiver.pack_id)

            def publish(connection: Connection) -> None:
                self._quota.check(connection, tenants.lock_tenant(connection, stored.tenant_id), receiver.size)
                save(connection, stored)
                store.insert_version(connection, version)
                packs = store.list_packs(connection, stored.id)
                hold_packs(connection, _holder(stored.id), stored.tenant_id, ContentNetwork.PRIVATE, packs)

            try:
                await receiver.commit(publish)
            except Problem:
                await self._content.discard(receiver.pack_id)
                raise
        _log.debug("template.stored", template=stored.id, tenant=stored.tenant_id, version=stored.version)
        return stored, version


def _check_new(connection: Connection, template: Template) -> None:
    if store.count_templates(connection, template.tenant_id) >= TEMPLATE_LIMIT:
        raise TemplateLimitReached
    if store.get_by_slug(connection, template.slug) is not None:
        raise TemplateSlugTaken


def _get_own(connection: Connection, tenant_id: str, template_id: str) -> Template:
    template = store.get_template(connection, template_id)
    if template is None or template.tenant_id != tenant_id:
        raise TemplateNotFound
    return template


def _choose_slug(slug: str | None, manifest: TemplateManifest) -> str:
    slug = slug or manifest.template.slug
    if slug is None:
        raise InvalidTemplate(extra=_list_faults([ManifestFault("template.slug", "a template needs a slug")], ()))
    return slug


def _changed_source(source: TemplateSource, update: TemplateUpdate) -> TemplateSource:
    if update.git_url is not None and update.git_url != source.git_url:
        return TemplateSource(update.git_url, update.ref, update.path)
    return TemplateSource(
        source.git_url,
        source.ref if update.ref is None else update.ref,
        source.path if update.path is None else update.path,
    )


def _status(is_public: bool) -> TemplateStatus:
    return TemplateStatus.PUBLISHED if is_public else TemplateStatus.DRAFT


def _describe(
    found: InspectedTemplate, manifest: TemplateManifest, source: TemplateSource, name: str | None, **fixed: Any
) -> Template:
    """Return the template that a manifest describes, without its files; `fixed` are the fields that it does not."""
    agent, listing = manifest.agent, manifest.template
    return Template(
        **fixed,
        name=name or agent.name,
        name_override=name,
        description=agent.description or "",
        category=listing.category,
        tags=list(listing.tags),
        author_name=listing.author_name or "",
        author_url=listing.author_url,
        author_logo_url=listing.author_logo_url,
        engine=manifest.engine,
        vibe=agent.vibe,
        emoji=agent.emoji,
        secrets=[secret.model_dump(mode="json") for secret in manifest.secrets],
        skills=[skill.cid or skill.clawhub_slug or "" for skill in manifest.skills],
        git_url=source.git_url,
        git_ref=source.ref,
        git_path=source.path,
        commit_sha=found.commit_sha,
        snapshot_cid="",
    )


def _new_version(found: InspectedTemplate, template: Template, pack_id: str) -> TemplateVersion:
    assert found.manifest is not None
    return TemplateVersion(
        template_id=template.id,
        version=template.version,
        commit_sha=found.commit_sha,
        manifest=found.manifest.to_document(),
        readme=found.readme,
        snapshot_cid=template.snapshot_cid,
        files=len(found.files),
        size=sum(file.size for file in found.files),
        pack_id=pack_id,
        created_at=template.updated_at,
    )


def _list_faults(errors: Sequence[ManifestFault], warnings: Sequence[ManifestFault]) -> dict[str, Any]:
    return {
        "valid": False,
        "errors": [asdict(fault) for fault in errors],
        "warnings": [asdict(fault) for fault in warnings],
    }


def _subject(tenant_id: str) -> str:
    return f"tenant/{tenant_id}"


def _holder(template_id: str) -> str:
    return f"template/{template_id}"
