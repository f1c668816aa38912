"""The templates of the package, which are published for everyone under the operator's own tenant."""

from collections.abc import Sequence
from dataclasses import dataclass

from roost.agents.library.templates import store
from roost.agents.library.templates.inspection import TemplateInspection
from roost.agents.library.templates.model import (
    Submission,
    Template,
    TemplateChanged,
    TemplateNotFound,
    TemplateSlugTaken,
    TemplateSource,
    TemplateUpdate,
    TemplateVersion,
)
from roost.agents.library.templates.service import TemplateService
from roost.core import log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.git.remote_contract import RemoteRepositories
from roost.identity import tenants
from roost.identity.model import DEFAULT_TENANT
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025

_GIT_URL = ""
"""Marks a template that comes from no repository."""
_log = log.get_logger("templates")


@dataclass(frozen=True)
class PackagedTemplates:
    """Templates in the folders `slugs` of `package`, which `templates` fetches from."""

    _db: Database
    _content: ContentService
    _templates: TemplateService
    _package: RemoteRepositories
    _slugs: Sequence[str]

    async def register(self) -> None:
        """Publish the templates that are missing or have changed. Other servers may do the same at once."""
        tenant = await self._db.write(lambda connection: tenants.ensure_tenant(connection, DEFAULT_TENANT))
        for slug in self._slugs:
            try:
                await self._register_template(tenant.id, slug)
            except (TemplateSlugTaken, TemplateChanged):  # another server was first
                continue
            except Problem as problem:
                _log.warning("template.not_registered", template=slug, reason=problem.message)

    async def _register_template(self, tenant_id: str, slug: str) -> None:
        try:
            template, version = await self._templates.get_by_slug(tenant_id, slug)
        except TemplateNotFound:
            if await self._db.read(lambda connection: store.was_archived(connection, tenant_id, slug)):
                return
            await self._templates.submit(tenant_id, Submission(TemplateSource(_GIT_URL, path=slug)))
            return
        is_ours = template.tenant_id == tenant_id and template.git_url == _GIT_URL
        if is_ours and not await self._is_current(template, version):
            await self._templates.update(tenant_id, template.id, TemplateUpdate())

    async def _is_current(self, template: Template, version: TemplateVersion) -> bool:
        """Return whether the package still holds this version."""
        async with (
            self._package.fetch(template.tenant_id, template.git_url, None) as commit,
            self._content.receive(UNIXFS_V1_2025) as receiver,  # only hashes: it is never committed
        ):
            inspection = TemplateInspection(commit, template.git_path)
            found = await inspection.run()
            root = await inspection.store_workspace(receiver)
        document = found.manifest.to_document() if found.manifest else None
        return (document, found.readme, str(root.cid.v1())) == (
            version.manifest,
            version.readme,
            version.snapshot_cid,
        )
