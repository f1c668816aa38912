"""Skills, their versions, and what an agent has of them. Pure.

A version is the CID of a folder with a `SKILL.md`. Its number is a semantic version, or the next patch of the last one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from roost.agents.library.skills.errors import (
    DangerousSkill,
    InvalidSkillRequest,
    SkillVersionConflict,
    SkillVersionNotFound,
)
from roost.agents.library.skills.skill_wants import SkillWants
from roost.agents.library.skills.verdict import Verdict, VerdictLevel
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid

ATTACHED_LIMIT = 10
"""Skills of one agent (contract, Limits)."""
LIBRARY_LIMIT, VERSION_LIMIT = 500, 200
"""Skills of one tenant, and versions of one skill."""
FOLDER = "skills"
"""Folder of a workspace in which each skill has a folder of its name."""
MARKER = ".roost-skill.json"
"""File in the folder of an attached skill that says what Roost wrote there; no part of the skill."""
DELIVER = "agent.skills"
"""Kind of the operation that makes the folder of a workspace equal to the attached skills."""
FIRST_VERSION = "1.0.0"
BUNDLED_OWNER = "roost"
"""Owner in the slugs of the skills that come with Roost; no tenant publishes or registers under it."""
VERSION_LENGTH = 64
SLUG_LENGTH = 128
ENV_VARS_LIMIT = 100

_USE_REMEDY = "Send acknowledge: true to use it all the same"
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PRERELEASE_PART = r"(?:0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRERELEASE_PART}(?:\.{_PRERELEASE_PART})*))?")
_SHORT_VERSION = re.compile(rf"v?({_NUMBER})(?:\.({_NUMBER}))?")
_SLUG = re.compile(r"@[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?/[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ENV_VAR = re.compile(r"[^=\x00-\x1f\x7f-\x9f]{1,128}")

VersionKey = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True)
class Skill:
    """A skill of a tenant's library; its name is that of its `SKILL.md`, and of its folder in a workspace.

    slug: `@owner/name`, for a skill of a hub or one that is to be found by it.
    """

    id: str
    tenant_id: str
    name: str
    slug: str | None
    created_at: datetime


@dataclass(frozen=True)
class SkillVersion:
    """A version of a skill: a folder of the content store.

    env_vars: names of variables that the registration lists besides those of `wants`. file_id: the stored file of which
    it was registered. warnings: about its `SKILL.md`. size: bytes of all files.
    """

    id: str
    skill_id: str
    tenant_id: str
    version: str
    cid: str
    description: str
    env_vars: Sequence[str]
    file_id: str | None
    wants: SkillWants
    warnings: Sequence[str]
    verdict: Verdict
    files: int
    size: int
    created_at: datetime


@dataclass(frozen=True)
class LibrarySkill:
    """A skill with one of its versions: in lists the newest."""

    skill: Skill
    version: SkillVersion


@dataclass(frozen=True)
class RegisteredSkill(LibrarySkill):
    """Result of a registration; `is_new` is False for content that the library had."""

    is_new: bool


@dataclass(frozen=True)
class NewSkill:
    """What a registration says besides the files; None leaves it to the files and to earlier versions.

    version: a semantic version. keeps_version: content that the library has may have another number there.
    description: in place of that of `SKILL.md`.
    """

    version: str | None = None
    keeps_version: bool = False
    slug: str | None = None
    name: str | None = None
    description: str | None = None
    env_vars: Sequence[str] = ()
    file_id: str | None = None


@dataclass(frozen=True)
class AttachedSkill(LibrarySkill):
    """A skill of an agent; `is_delivered` tells whether its files are in the workspace."""

    attached_at: datetime
    is_delivered: bool


@dataclass(frozen=True)
class MissingRequirements:
    """What a skill wants that its agent lacks.

    secrets: names of required ones that are not attached. programs: None if the container cannot be asked.
    hosts: those that the rules for outgoing connections refuse.
    """

    secrets: Sequence[str] = ()
    programs: Sequence[str] | None = None
    hosts: Sequence[str] = ()


@dataclass(frozen=True)
class AttachedSkillDetail:
    """An attached skill, what it lacks, and whether the engine lists it; None if the engine cannot be asked.

    fault: why a running engine does not list or use it; None while it may still do so.
    """

    attached: AttachedSkill
    missing: MissingRequirements = field(default_factory=MissingRequirements)
    is_loaded: bool | None = None
    fault: str | None = None


def content_scope(tenant_id: str) -> ContentScope:
    """Return where the folders of a tenant's skills are."""
    return ContentScope(ContentNetwork.PRIVATE, tenant_id)


def holder_of(version_id: str) -> str:
    """Return the name under which a version holds its pack."""
    return f"skill/{version_id}"


def parse_version(text: str) -> str:
    """Return a semantic version. Raises InvalidSkillRequest."""
    if len(text) > VERSION_LENGTH or not _VERSION.fullmatch(text):
        raise InvalidSkillRequest(f"version must be a semantic version such as 1.2.0, got {text[:VERSION_LENGTH]!r}")
    return text


def complete_version(text: str) -> str | None:
    """Return the semantic version that an author means by `1`, `v1.2` or `1.2.0`; None for other text."""
    if len(text) <= VERSION_LENGTH and _VERSION.fullmatch(text.removeprefix("v")):
        return text.removeprefix("v")
    short = _SHORT_VERSION.fullmatch(text)
    return f"{short[1]}.{short[2] or 0}.0" if short else None


def version_key(version: str) -> VersionKey:
    """Return the key that sorts semantic versions (semver.org, 11)."""
    found = _VERSION.fullmatch(version)
    assert found is not None, version
    parts = found[4].split(".") if found[4] else []
    prerelease = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return int(found[1]), int(found[2]), int(found[3]), not parts, prerelease


def next_version(versions: Iterable[str]) -> str:
    """Return the version after the highest one."""
    highest = max(versions, key=version_key, default=None)
    if highest is None:
        return FIRST_VERSION
    major, minor, patch, is_release, _ = version_key(highest)
    return f"{major}.{minor}.{patch + is_release}"


def release_key(version: str) -> tuple[bool, VersionKey]:
    """Return the key that sorts releases after prereleases, each by their numbers."""
    key = version_key(version)
    return key[3], key


def sort_versions(versions: Iterable[SkillVersion]) -> Sequence[SkillVersion]:
    """Return the versions, newest first: releases before prereleases."""
    return sorted(versions, key=lambda one: release_key(one.version), reverse=True)


def find_newer(attached: SkillVersion, versions: Iterable[SkillVersion]) -> SkillVersion | None:
    """Return the newest version if its number is above that of the attached one."""
    newest = next(iter(sort_versions(versions)), None)
    is_newer = newest is not None and version_key(newest.version) > version_key(attached.version)
    return newest if is_newer else None


def find_version(versions: Iterable[SkillVersion], version: str) -> SkillVersion:
    """Return the version of that number or CID. Raises SkillVersionNotFound."""
    spellings = parse_cid_spellings(version)
    for one in versions:
        if one.version == version or one.cid in spellings:
            return one
    raise SkillVersionNotFound


def check_version(name: str, present: str, wanted: str | None) -> None:
    """Raise SkillVersionConflict if content that is a version already is wanted under another number."""
    if wanted not in {None, present}:
        raise SkillVersionConflict(
            f"Skill version conflict: these files of {name} are version {present} already, not {wanted}; "
            f"leave out the version, or change a file"
        )


def parse_slug(text: str) -> str:
    """Return a slug. Raises InvalidSkillRequest."""
    if not _SLUG.fullmatch(text):
        raise InvalidSkillRequest(f"slug must be like @owner/name, got {text[:SLUG_LENGTH]!r}")
    if text.startswith(f"@{BUNDLED_OWNER}/"):
        raise InvalidSkillRequest(f"slug must not begin with @{BUNDLED_OWNER}/: those skills come with Roost")
    return text


def parse_env_vars(names: Sequence[str]) -> Sequence[str]:
    """Return the distinct names of variables. Raises InvalidSkillRequest."""
    for name in names:
        if not _ENV_VAR.fullmatch(name):
            raise InvalidSkillRequest(f"envVars must be names of variables such as API_KEY, got {name[:128]!r}")
    if len(names) > ENV_VARS_LIMIT:
        raise InvalidSkillRequest(f"envVars must be at most {ENV_VARS_LIMIT} names")
    return list(dict.fromkeys(names))


def parse_cid_spellings(text: str) -> Sequence[str]:
    """Return all spellings of a CID; none for text that is no CID."""
    try:
        return Cid.parse_spellings(text)
    except InvalidCid:
        return ()


def check_acknowledged(name: str, verdict: Verdict, *, acknowledged: bool, remedy: str = _USE_REMEDY) -> None:
    """Raise DangerousSkill, which says how to acknowledge it, for a dangerous verdict that is not acknowledged."""
    if verdict.level is VerdictLevel.DANGEROUS and not acknowledged:
        findings = (finding for finding in verdict.findings if finding.level is VerdictLevel.DANGEROUS)
        raise DangerousSkill(name, [f"{finding.rule} in {finding.path}:{finding.line}" for finding in findings], remedy)
