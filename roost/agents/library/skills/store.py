"""Tables and SQL of skills."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.library.skills.model import AttachedSkill, LibrarySkill, Skill, SkillVersion
from roost.agents.library.skills.skill_wants import SkillWants, WantedSecret
from roost.agents.library.skills.verdict import Finding, Verdict, VerdictLevel
from roost.core.db import JsonText, UtcTime, metadata, read_one, read_record, record_values

skills = sa.Table(
    "skills",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("slug", sa.String(128)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("tenant_id", "slug"),
    sa.Index("ix_skills_tenant_id_name", "tenant_id", "name"),
)

skill_versions = sa.Table(
    "skill_versions",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("skill_id", sa.String(36), sa.ForeignKey("skills.id"), nullable=False),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("version", sa.String(64), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("env_vars", JsonText, nullable=False),
    sa.Column("file_id", sa.String(64)),
    sa.Column("wants", JsonText, nullable=False),
    sa.Column("warnings", JsonText, nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("findings", JsonText, nullable=False),
    sa.Column("rules_version", sa.String(64), nullable=False),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("skill_id", "version"),
    sa.UniqueConstraint("tenant_id", "cid"),
    sa.Index("ix_skill_versions_rules_version", "rules_version"),
)

agent_skills = sa.Table(
    "agent_skills",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("skill_id", sa.String(36), sa.ForeignKey("skills.id"), primary_key=True),
    sa.Column("version_id", sa.String(36), sa.ForeignKey("skill_versions.id"), nullable=False, index=True),
    sa.Column("attached_at", UtcTime, nullable=False),
    sa.Column("delivered_id", sa.String(36)),
)
"""`delivered_id` is the version whose files were last written into the workspace."""
_skill = partial(read_record, Skill)


def insert_skill(connection: Connection, skill: Skill) -> None:
    connection.execute(skills.insert().values(record_values(skills, skill)))


def delete_skill(connection: Connection, skill_id: str) -> None:
    connection.execute(skills.delete().where(skills.c.id == skill_id))


def get_skill(connection: Connection, tenant_id: str, skill_id: str) -> Skill | None:
    query = skills.select().where(skills.c.tenant_id == tenant_id, skills.c.id == skill_id)
    return read_one(connection, query, _skill)


def find_by_slug(connection: Connection, tenant_id: str, slug: str) -> Skill | None:
    query = skills.select().where(skills.c.tenant_id == tenant_id, skills.c.slug == slug)
    return read_one(connection, query, _skill)


def find_by_name(connection: Connection, tenant_id: str, name: str) -> Skill | None:
    """Find a skill without a slug."""
    query = skills.select().where(skills.c.tenant_id == tenant_id, skills.c.name == name, skills.c.slug.is_(None))
    return read_one(connection, query, _skill)


def count_skills(connection: Connection, tenant_id: str) -> int:
    return connection.execute(sa.select(sa.func.count()).where(skills.c.tenant_id == tenant_id)).scalar_one()


def list_skills(connection: Connection, tenant_id: str) -> Sequence[Skill]:
    """List the tenant's skills, newest first."""
    query = skills.select().where(skills.c.tenant_id == tenant_id)
    return [_skill(row) for row in connection.execute(query.order_by(skills.c.created_at.desc(), skills.c.id))]


def insert_version(connection: Connection, version: SkillVersion) -> None:
    values = record_values(
        skill_versions,
        version,
        env_vars=list(version.env_vars),
        wants=_encode_wants(version.wants),
        warnings=list(version.warnings),
        **_verdict_values(version.verdict),
    )
    connection.execute(skill_versions.insert().values(values))


def delete_version(connection: Connection, version_id: str) -> None:
    connection.execute(skill_versions.delete().where(skill_versions.c.id == version_id))


def set_verdict(connection: Connection, version_id: str, verdict: Verdict) -> None:
    changed = skill_versions.update().where(skill_versions.c.id == version_id)
    connection.execute(changed.values(_verdict_values(verdict)))


def list_versions(connection: Connection, skill_ids: Collection[str]) -> Sequence[SkillVersion]:
    """List the versions of skills, in no order."""
    query = skill_versions.select().where(skill_versions.c.skill_id.in_(skill_ids))
    return [_version(row) for row in connection.execute(query)]


def list_tenant_versions(connection: Connection, tenant_id: str) -> Sequence[SkillVersion]:
    """List all versions of a tenant, in no order."""
    query = skill_versions.select().where(skill_versions.c.tenant_id == tenant_id)
    return [_version(row) for row in connection.execute(query)]


def find_by_cid(connection: Connection, tenant_id: str, cids: Collection[str]) -> LibrarySkill | None:
    """Find the version of one of these CIDs, and its skill."""
    query = skill_versions.select().where(skill_versions.c.tenant_id == tenant_id, skill_versions.c.cid.in_(cids))
    version = read_one(connection, query, _version)
    if version is None:
        return None
    skill = get_skill(connection, tenant_id, version.skill_id)
    return None if skill is None else LibrarySkill(skill, version)


def list_outdated(connection: Connection, rules_version: str, after: str, limit: int) -> Sequence[SkillVersion]:
    """List versions of all tenants after an id, in order, whose verdict is of other rules."""
    query = skill_versions.select().where(skill_versions.c.rules_version != rules_version, skill_versions.c.id > after)
    return [_version(row) for row in connection.execute(query.order_by(skill_versions.c.id).limit(limit))]


def list_agents_of_versions(connection: Connection, version_ids: Collection[str]) -> Sequence[str]:
    """List the agents that have one of these versions."""
    query = sa.select(agent_skills.c.agent_id).where(agent_skills.c.version_id.in_(version_ids)).distinct()
    return list(connection.execute(query.order_by(agent_skills.c.agent_id)).scalars())


def list_attached(connection: Connection, agent_id: str) -> Sequence[AttachedSkill]:
    """List an agent's skills in the order of their attachment."""
    query = agent_skills.select().where(agent_skills.c.agent_id == agent_id)
    rows = connection.execute(query.order_by(agent_skills.c.attached_at, agent_skills.c.skill_id)).all()
    own = {row.id: _skill(row) for row in connection.execute(_having(skills, [row.skill_id for row in rows]))}
    chosen = {
        row.id: _version(row) for row in connection.execute(_having(skill_versions, [row.version_id for row in rows]))
    }
    return [
        AttachedSkill(own[row.skill_id], chosen[row.version_id], row.attached_at, row.delivered_id == row.version_id)
        for row in rows
    ]


def insert_attachments(connection: Connection, agent_id: str, versions: Mapping[str, str], at: datetime) -> None:
    """Attach versions: skill id -> version id."""
    for skill_id, version_id in versions.items():
        values = {"agent_id": agent_id, "skill_id": skill_id, "version_id": version_id, "attached_at": at}
        connection.execute(agent_skills.insert().values(values))


def set_attached_version(connection: Connection, agent_id: str, skill_id: str, version_id: str) -> None:
    connection.execute(_attachment(agent_skills.update(), agent_id, skill_id).values(version_id=version_id))


def set_delivered(connection: Connection, agent_id: str, versions: Mapping[str, str]) -> None:
    """Record the versions that are in the workspace: skill id -> version id."""
    for skill_id, version_id in versions.items():
        connection.execute(_attachment(agent_skills.update(), agent_id, skill_id).values(delivered_id=version_id))


def delete_attachment(connection: Connection, agent_id: str, skill_id: str) -> None:
    connection.execute(_attachment(agent_skills.delete(), agent_id, skill_id))


def delete_attachments(connection: Connection, agent_id: str) -> None:
    connection.execute(agent_skills.delete().where(agent_skills.c.agent_id == agent_id))


def _attachment(statement: Any, agent_id: str, skill_id: str) -> Any:
    return statement.where(agent_skills.c.agent_id == agent_id, agent_skills.c.skill_id == skill_id)


def _having(table: sa.Table, ids: Collection[str]) -> Any:
    return table.select().where(table.c.id.in_(ids))


def _version(row: Any) -> SkillVersion:
    findings = [
        Finding(rule, VerdictLevel(level), path, line, excerpt) for rule, level, path, line, excerpt in row.findings
    ]
    return read_record(
        SkillVersion,
        row,
        wants=_decode_wants(row.wants),
        verdict=Verdict(VerdictLevel(row.verdict), findings, row.rules_version),
    )


def _verdict_values(verdict: Verdict) -> dict[str, Any]:
    findings = [[one.rule, one.level.value, one.path, one.line, one.excerpt] for one in verdict.findings]
    return {"verdict": verdict.level.value, "findings": findings, "rules_version": verdict.rules_version}


def _encode_wants(wants: SkillWants) -> dict[str, Any]:
    secrets = [[one.name, one.description, one.required] for one in wants.secrets]
    return {"secrets": secrets, "programs": list(wants.programs), "hosts": list(wants.hosts)}


def _decode_wants(stored: Mapping[str, Any]) -> SkillWants:
    secrets = [WantedSecret(name, description, required) for name, description, required in stored["secrets"]]
    return SkillWants(secrets, stored["programs"], stored["hosts"])
