"""SQL of templates and their versions."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.library.templates.model import Template, TemplateFilter, TemplateStatus, TemplateVersion
from roost.core.db import (
    JsonText,
    UtcTime,
    insert_or_ignore,
    metadata,
    page_by_creation,
    read_one,
    read_record,
    record_values,
)
from roost.core.page_cursor import PageCursor

templates = sa.Table(
    "templates",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("slug", sa.String(100), nullable=False),
    sa.Column("active_slug", sa.String(100), unique=True),  # NULL once it is archived, so that the slug is free again
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("name_override", sa.String(100)),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("category", sa.String(50), nullable=False),
    sa.Column("tags", JsonText, nullable=False),
    sa.Column("author_name", sa.String(100), nullable=False),
    sa.Column("author_url", sa.Text),
    sa.Column("author_logo_url", sa.Text),
    sa.Column("engine", sa.String(32)),
    sa.Column("vibe", sa.String(200)),
    sa.Column("emoji", sa.String(32)),
    sa.Column("secrets", JsonText, nullable=False),
    sa.Column("skills", JsonText, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("featured", sa.Boolean, nullable=False),
    sa.Column("git_url", sa.Text, nullable=False),
    sa.Column("git_ref", sa.String(255)),
    sa.Column("git_path", sa.Text),
    sa.Column("commit_sha", sa.String(40), nullable=False),
    sa.Column("snapshot_cid", sa.String(100), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index(None, "status", "created_at", "id"),
)

template_versions = sa.Table(
    "template_versions",
    metadata,
    sa.Column("template_id", sa.String(36), sa.ForeignKey("templates.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("commit_sha", sa.String(40), nullable=False),
    sa.Column("manifest", JsonText, nullable=False),
    sa.Column("readme", sa.Text, nullable=False),
    sa.Column("snapshot_cid", sa.String(100), nullable=False),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("pack_id", sa.String(32), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)

_PRESENT = templates.c.status != TemplateStatus.ARCHIVED.value
_PUBLISHED = templates.c.status == TemplateStatus.PUBLISHED.value
_version = partial(read_record, TemplateVersion)


def insert_template(connection: Connection, template: Template) -> bool:
    """Insert a template unless another one has its slug; return whether it was inserted."""
    values = record_values(templates, template, status=template.status.value, active_slug=template.slug)
    return insert_or_ignore(connection, templates.insert().values(values))


def update_template(connection: Connection, template: Template) -> bool:
    """Replace a template unless another one has its slug; return whether it was replaced."""
    values = record_values(templates, template, status=template.status.value, active_slug=template.slug)
    return insert_or_ignore(connection, templates.update().where(templates.c.id == template.id).values(values))


def archive_template(connection: Connection, template: Template) -> None:
    query = templates.update().where(templates.c.id == template.id)
    values = {"status": TemplateStatus.ARCHIVED.value, "active_slug": None, "updated_at": template.updated_at}
    connection.execute(query.values(values))
    connection.execute(template_versions.delete().where(template_versions.c.template_id == template.id))


def get_template(connection: Connection, template_id: str) -> Template | None:
    """Return a template unless it is archived."""
    return read_one(connection, templates.select().where(templates.c.id == template_id, _PRESENT), _template)


def get_by_slug(connection: Connection, slug: str) -> Template | None:
    """Return the template with this slug unless it is archived."""
    return read_one(connection, templates.select().where(templates.c.active_slug == slug), _template)


def was_archived(connection: Connection, tenant_id: str, slug: str) -> bool:
    """Return whether the tenant archived a template of this slug that came from no repository."""
    is_meant = (templates.c.tenant_id == tenant_id) & (templates.c.slug == slug) & (templates.c.git_url == "")
    query = sa.select(templates.c.id).where(is_meant, templates.c.status == TemplateStatus.ARCHIVED.value)
    return connection.execute(query.limit(1)).first() is not None


def count_templates(connection: Connection, tenant_id: str) -> int:
    query = sa.select(sa.func.count()).select_from(templates).where(templates.c.tenant_id == tenant_id, _PRESENT)
    return connection.execute(query).scalar_one()


def list_templates(
    connection: Connection,
    tenant_id: str | None,
    wanted: TemplateFilter,
    after: PageCursor | None,
    limit: int,
) -> Sequence[Template]:
    """List the templates of a tenant, or the published ones of all, newest first."""
    query = templates.select().where(*_conditions(tenant_id, wanted))
    query = page_by_creation(query, templates.c.created_at, templates.c.id, after)
    return [_template(row) for row in connection.execute(query.limit(limit))]


def list_categories(connection: Connection, tenant_id: str | None) -> Sequence[str]:
    """List the categories of the templates of a tenant, or of the published ones of all."""
    query = sa.select(templates.c.category).distinct().where(*_conditions(tenant_id, TemplateFilter()))
    return sorted(connection.execute(query.limit(1000)).scalars())


def insert_version(connection: Connection, version: TemplateVersion) -> None:
    connection.execute(template_versions.insert().values(record_values(template_versions, version)))


def get_version(connection: Connection, template_id: str, version: int) -> TemplateVersion | None:
    table = template_versions.c
    query = template_versions.select().where(table.template_id == template_id, table.version == version)
    return read_one(connection, query, _version)


def delete_old_versions(connection: Connection, template_id: str, oldest_kept: int) -> None:
    table = template_versions.c
    connection.execute(template_versions.delete().where(table.template_id == template_id, table.version < oldest_kept))


def list_packs(connection: Connection, template_id: str) -> Sequence[str]:
    """List the packs of all kept versions."""
    query = sa.select(template_versions.c.pack_id).where(template_versions.c.template_id == template_id)
    return list(connection.execute(query).scalars())


def _conditions(tenant_id: str | None, wanted: TemplateFilter) -> list[sa.ColumnElement[bool]]:
    found = [_PUBLISHED] if tenant_id is None else [templates.c.tenant_id == tenant_id, _PRESENT]
    if wanted.category is not None:
        found.append(templates.c.category == wanted.category)
    if wanted.featured is not None:
        found.append(templates.c.featured == wanted.featured)
    if wanted.text:
        text = wanted.text.lower()
        columns = (templates.c.slug, templates.c.name, templates.c.description)
        found.append(sa.or_(*(sa.func.lower(column).contains(text, autoescape=True) for column in columns)))
    return found


def _template(row: Any) -> Template:
    return read_record(Template, row, status=TemplateStatus(row.status))
