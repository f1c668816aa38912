"""Tables and SQL of the hub."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy import Connection

from roost.agents.library.hub.model import (
    HubCursor,
    HubFilter,
    HubListing,
    HubOwner,
    HubReference,
    HubSkill,
    HubSort,
    HubVersion,
    search_text,
)
from roost.agents.library.skills.skill_file import SkillWants
from roost.agents.library.skills.verdict import Verdict
from roost.core.db import JsonText, UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values

hub_owners = sa.Table(
    "hub_owners",
    metadata,
    sa.Column("handle", sa.String(39), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, unique=True),
)

hub_skills = sa.Table(
    "hub_skills",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("owner", sa.String(39), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("author_name", sa.String(100), nullable=False),
    sa.Column("author_url", sa.String(500)),
    sa.Column("author_logo_url", sa.String(500)),
    sa.Column("category", sa.String(40), nullable=False),
    sa.Column("tags", JsonText, nullable=False),
    sa.Column("featured", sa.Boolean, nullable=False),
    sa.Column("install_count", sa.Integer, nullable=False),
    sa.Column("latest_id", sa.String(36), nullable=False),
    sa.Column("search", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("owner", "name"),
    sa.Index("ix_hub_skills_install_count", "install_count", "id"),
    sa.Index("ix_hub_skills_created_at", "created_at", "id"),
    sa.Index("ix_hub_skills_name", "name", "id"),
    sa.Index("ix_hub_skills_category", "category"),
)
"""`search` is the text in which words of a query are searched."""

hub_versions = sa.Table(
    "hub_versions",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("hub_skill_id", sa.String(36), sa.ForeignKey("hub_skills.id", ondelete="CASCADE"), nullable=False),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("version", sa.String(64), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("license", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("changelog", sa.Text, nullable=False),
    sa.Column("wants", JsonText, nullable=False),
    sa.Column("verdict", JsonText, nullable=False),
    sa.Column("rules_version", sa.String(64), nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("acknowledgement", sa.Text),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("hub_skill_id", "version"),
    sa.UniqueConstraint("hub_skill_id", "cid"),
    sa.Index("ix_hub_versions_rules_version", "rules_version"),
)

hub_installs = sa.Table(
    "hub_installs",
    metadata,
    sa.Column("hub_skill_id", sa.String(36), sa.ForeignKey("hub_skills.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), primary_key=True),
    sa.Column("installed_at", UtcTime, nullable=False),
)

hub_uploads = sa.Table(
    "hub_uploads",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("content", sa.LargeBinary),
    sa.Column("created_at", UtcTime, nullable=False, index=True),
)
"""Files that a client of ClawHub uploads one by one before it publishes them."""

_WITHOUT_BODY = tuple(column for column in hub_versions.c if column is not hub_versions.c.body)
_WANTS: TypeAdapter[SkillWants] = TypeAdapter(SkillWants)
_VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)
_skill = partial(read_record, HubSkill)
_SORT_COLUMNS: Mapping[HubSort, sa.Column[Any]] = {
    HubSort.POPULAR: hub_skills.c.install_count,
    HubSort.NEWEST: hub_skills.c.created_at,
    HubSort.NAME: hub_skills.c.name,
}


def add_owner(connection: Connection, owner: HubOwner) -> bool:
    """Insert an owner unless the handle is taken; return whether it was inserted."""
    return insert_or_ignore(connection, hub_owners.insert().values(handle=owner.handle, tenant_id=owner.tenant_id))


def find_owner(connection: Connection, tenant_id: str) -> HubOwner | None:
    query = hub_owners.select().where(hub_owners.c.tenant_id == tenant_id)
    return read_one(connection, query, lambda row: read_record(HubOwner, row))


def insert_skill(connection: Connection, skill: HubSkill) -> None:
    connection.execute(hub_skills.insert().values(_skill_values(skill)))


def update_skill(connection: Connection, skill: HubSkill) -> None:
    """Replace all but the number of installations."""
    values = _skill_values(skill)
    del values["install_count"]
    connection.execute(hub_skills.update().where(hub_skills.c.id == skill.id).values(values))


def delete_skill(connection: Connection, skill_id: str) -> None:
    """Delete a skill with its versions."""
    connection.execute(hub_skills.delete().where(hub_skills.c.id == skill_id))


def count_skills(connection: Connection, tenant_id: str) -> int:
    return connection.execute(sa.select(sa.func.count()).where(hub_skills.c.tenant_id == tenant_id)).scalar_one()


def get_skill(connection: Connection, skill_id: str) -> HubSkill | None:
    return read_one(connection, hub_skills.select().where(hub_skills.c.id == skill_id), _skill)


def find_skill(connection: Connection, owner: str, name: str) -> HubSkill | None:
    query = hub_skills.select().where(hub_skills.c.owner == owner, hub_skills.c.name == name)
    return read_one(connection, query, _skill)


def find_skills(connection: Connection, references: Collection[HubReference]) -> Mapping[HubReference, HubSkill]:
    """Find skills by the names of their owners, by ids, or by names alone, which mean the first of that name."""
    owned = [(one.owner, one.name) for one in references if one.owner is not None]
    free = [one.name for one in references if one.owner is None]
    place = sa.func.row_number().over(
        partition_by=hub_skills.c.name, order_by=(hub_skills.c.created_at, hub_skills.c.id)
    )
    placed = sa.select(hub_skills.c.id, place.label("place")).where(hub_skills.c.name.in_(free)).subquery()
    query = hub_skills.select().where(
        sa.or_(
            sa.tuple_(hub_skills.c.owner, hub_skills.c.name).in_(owned),
            hub_skills.c.id.in_(free),
            hub_skills.c.id.in_(sa.select(placed.c.id).where(placed.c.place == 1)),
        )
    )
    found: dict[HubReference, HubSkill] = {}
    for skill in map(_skill, connection.execute(query.order_by(hub_skills.c.created_at, hub_skills.c.id))):
        found[HubReference(skill.name, skill.owner)] = skill
        found.setdefault(HubReference(skill.name), skill)
        found[HubReference(skill.id)] = skill
    return found


def find_by_cid(connection: Connection, cids: Collection[str]) -> HubSkill | None:
    """Find the skill that first published content of one of these CIDs."""
    versions = hub_skills.join(hub_versions, hub_versions.c.hub_skill_id == hub_skills.c.id)
    query = sa.select(hub_skills).select_from(versions).where(hub_versions.c.cid.in_(cids))
    return read_one(connection, query.order_by(hub_versions.c.created_at, hub_versions.c.id).limit(1), _skill)


def search_skills(
    connection: Connection, chosen: HubFilter, after: HubCursor | None, limit: int
) -> Sequence[HubListing]:
    """List skills with their newest versions after a position, in the order of the filter."""
    key, descending = _SORT_COLUMNS[chosen.sort], chosen.sort is not HubSort.NAME
    query = hub_skills.select().where(*_conditions(chosen))
    if after is not None:
        here = sa.tuple_(key, hub_skills.c.id)
        position = sa.tuple_(sa.literal(after.value, key.type), sa.literal(after.id))
        query = query.where(here < position if descending else here > position)
    order = (key.desc(), hub_skills.c.id.desc()) if descending else (key, hub_skills.c.id)
    return _with_newest(connection, [_skill(row) for row in connection.execute(query.order_by(*order).limit(limit))])


def rank_skills(connection: Connection, chosen: HubFilter, query: str, limit: int) -> Sequence[HubListing]:
    """List skills with their newest versions: those whose name is like the query first, then by installations."""
    name = hub_skills.c.name
    rank = sa.case(
        (name == query, 0),
        (name.startswith(query, autoescape=True), 1),
        (name.contains(query, autoescape=True), 2),
        else_=3,
    )
    found = hub_skills.select().where(*_conditions(chosen))
    found = found.order_by(rank, hub_skills.c.install_count.desc(), hub_skills.c.id.desc()).limit(limit)
    return _with_newest(connection, [_skill(row) for row in connection.execute(found)])


def list_categories(connection: Connection) -> Sequence[str]:
    query = sa.select(hub_skills.c.category).distinct().order_by(hub_skills.c.category)
    return list(connection.execute(query).scalars())


def insert_version(connection: Connection, version: HubVersion) -> None:
    values = record_values(hub_versions, version, wants=asdict(version.wants), **_verdict_values(version.verdict))
    connection.execute(hub_versions.insert().values(values))


def list_versions(connection: Connection, hub_skill_id: str) -> Sequence[HubVersion]:
    """List the versions of a skill without their bodies, last published first."""
    query = sa.select(*_WITHOUT_BODY).where(hub_versions.c.hub_skill_id == hub_skill_id)
    query = query.order_by(hub_versions.c.created_at.desc(), hub_versions.c.id)
    return [_version(row) for row in connection.execute(query)]


def find_versions(
    connection: Connection,
    newest: Collection[str],
    numbers: Collection[tuple[str, str]],
    cids: Collection[tuple[str, str]],
) -> Sequence[HubVersion]:
    """Find versions without their bodies: by id, or by the number or the CID within a skill."""
    skill_id = hub_versions.c.hub_skill_id
    wanted = sa.or_(
        hub_versions.c.id.in_(newest),
        sa.tuple_(skill_id, hub_versions.c.version).in_(numbers),
        sa.tuple_(skill_id, hub_versions.c.cid).in_(cids),
    )
    return [_version(row) for row in connection.execute(sa.select(*_WITHOUT_BODY).where(wanted))]


def find_by_fingerprint(connection: Connection, hub_skill_id: str, fingerprint: str) -> HubVersion | None:
    """Find the last published version of a skill with a fingerprint, without its body."""
    query = sa.select(*_WITHOUT_BODY).where(
        hub_versions.c.hub_skill_id == hub_skill_id, hub_versions.c.fingerprint == fingerprint
    )
    return read_one(connection, query.order_by(hub_versions.c.created_at.desc(), hub_versions.c.id).limit(1), _version)


def get_body(connection: Connection, version_id: str) -> str:
    """Return the text of a version's `SKILL.md` after its front matter."""
    return connection.execute(sa.select(hub_versions.c.body).where(hub_versions.c.id == version_id)).scalar_one()


def list_fingerprints(connection: Connection, owner: str) -> frozenset[str]:
    """List the fingerprints of all versions that are published under the name of an owner."""
    query = sa.select(hub_versions.c.fingerprint).join(hub_skills).where(hub_skills.c.owner == owner)
    return frozenset(connection.execute(query).scalars())


def list_outdated(connection: Connection, rules_version: str, after: str, limit: int) -> Sequence[HubVersion]:
    """List versions after an id, in order, whose verdict is of other rules."""
    query = hub_versions.select().where(hub_versions.c.rules_version != rules_version, hub_versions.c.id > after)
    return [_version(row) for row in connection.execute(query.order_by(hub_versions.c.id).limit(limit))]


def set_verdict(connection: Connection, version_id: str, verdict: Verdict) -> None:
    changed = hub_versions.update().where(hub_versions.c.id == version_id)
    connection.execute(changed.values(_verdict_values(verdict)))


def set_acknowledgement(connection: Connection, version_id: str, reason: str) -> None:
    connection.execute(hub_versions.update().where(hub_versions.c.id == version_id).values(acknowledgement=reason))


def add_install(connection: Connection, hub_skill_id: str, tenant_id: str, at: datetime) -> None:
    """Count an installation, once for each tenant."""
    values = {"hub_skill_id": hub_skill_id, "tenant_id": tenant_id, "installed_at": at}
    if insert_or_ignore(connection, hub_installs.insert().values(values)):
        changed = hub_skills.update().where(hub_skills.c.id == hub_skill_id)
        connection.execute(changed.values(install_count=hub_skills.c.install_count + 1))


def insert_upload(connection: Connection, upload_id: str, tenant_id: str, size: int, at: datetime) -> None:
    """Announce a file; `set_upload` gives it its content."""
    values = {"id": upload_id, "tenant_id": tenant_id, "size": size, "created_at": at}
    connection.execute(hub_uploads.insert().values(values))


def get_upload_size(connection: Connection, tenant_id: str, upload_id: str) -> int | None:
    query = sa.select(hub_uploads.c.size).where(hub_uploads.c.id == upload_id, hub_uploads.c.tenant_id == tenant_id)
    return connection.execute(query).scalar_one_or_none()


def set_upload(connection: Connection, upload_id: str, content: bytes) -> None:
    connection.execute(hub_uploads.update().where(hub_uploads.c.id == upload_id).values(content=content))


def measure_uploads(connection: Connection, tenant_id: str) -> tuple[int, int]:
    """Return the number and the announced bytes of a tenant's files."""
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(hub_uploads.c.size), 0))
    count, size = connection.execute(query.where(hub_uploads.c.tenant_id == tenant_id)).one()
    return count, size


def get_uploads(connection: Connection, tenant_id: str) -> Mapping[str, bytes]:
    """Return the files of a tenant by their ids."""
    query = hub_uploads.select().where(hub_uploads.c.tenant_id == tenant_id, hub_uploads.c.content.is_not(None))
    return {row.id: row.content for row in connection.execute(query)}


def delete_uploads(connection: Connection, tenant_id: str) -> None:
    connection.execute(hub_uploads.delete().where(hub_uploads.c.tenant_id == tenant_id))


def delete_old_uploads(connection: Connection, before: datetime) -> None:
    connection.execute(hub_uploads.delete().where(hub_uploads.c.created_at < before))


def _conditions(chosen: HubFilter) -> Sequence[sa.ColumnElement[bool]]:
    found = [hub_skills.c.search.contains(term, autoescape=True) for term in chosen.terms]
    if chosen.category is not None:
        found.append(hub_skills.c.category == chosen.category)
    if chosen.featured is not None:
        found.append(hub_skills.c.featured.is_(chosen.featured))
    if chosen.prefix is not None:
        found.append(hub_skills.c.name.startswith(chosen.prefix, autoescape=True))
    return found


def _with_newest(connection: Connection, skills: Sequence[HubSkill]) -> Sequence[HubListing]:
    newest = {one.id: one for one in find_versions(connection, [skill.latest_id for skill in skills], (), ())}
    return [HubListing(skill, newest[skill.latest_id]) for skill in skills]


def _skill_values(skill: HubSkill) -> dict[str, Any]:
    return record_values(hub_skills, skill, tags=list(skill.tags), search=search_text(skill))


def _verdict_values(verdict: Verdict) -> dict[str, Any]:
    return {"verdict": _VERDICT.dump_python(verdict, mode="json"), "rules_version": verdict.rules_version}


def _version(row: Any) -> HubVersion:
    return read_record(
        HubVersion,
        row,
        wants=_WANTS.validate_python(row.wants),
        verdict=_VERDICT.validate_python(row.verdict),
    )
