"""Skills of the hub, their versions, and how lists of them are searched and paged. Pure."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from roost.agents.library.hub.errors import HubVersionNotFound, InvalidHubCursor, InvalidHubRequest
from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.skill_file import SkillWants
from roost.agents.library.skills.verdict import Verdict
from roost.core.sanitize import is_storable

DEFAULT_CATEGORY = "other"
LATEST_TAG = "latest"
"""The one tag of ClawHub's protocol that a skill has: that of its newest version."""
PAGE_LIMIT, PAGE_DEFAULT = 100, 20
PUBLISHED_LIMIT, VERSION_LIMIT = 500, 200
"""Published skills of one tenant, and published versions of one skill."""
QUERY_LIMIT, TERMS_LIMIT = 200, 8
TAGS_LIMIT, TAG_LENGTH = 10, 40
OWNER_LENGTH = 38

_COUNT_LIMIT = (1 << 31) - 1
_LABEL = re.compile(r"[a-z0-9]+(?:[ &+-]+[a-z0-9]+)*")
_NOT_OF_OWNER = re.compile(r"[^a-z0-9]+")
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_URL = re.compile(r"https?://[^\s<>\"']+")
# Order of ASCII in the root collation of Unicode, which clients use to sort the paths that they hash.
_COLLATION = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"


class HubSort(StrEnum):
    POPULAR = "popular"
    NEWEST = "newest"
    NAME = "name"


@dataclass(frozen=True)
class HubOwner:
    """The name under which a tenant publishes."""

    handle: str
    tenant_id: str


@dataclass(frozen=True)
class HubSkill:
    """A published skill. install_count: tenants that have installed it. latest_id: its newest version."""

    id: str
    tenant_id: str
    owner: str
    name: str
    description: str
    author_name: str
    author_url: str | None
    author_logo_url: str | None
    category: str
    tags: Sequence[str]
    featured: bool
    install_count: int
    latest_id: str
    created_at: datetime
    updated_at: datetime

    @property
    def slug(self) -> str:
        return f"@{self.owner}/{self.name}"


@dataclass(frozen=True)
class HubVersion:
    """A published version: a folder of the content store that the hub holds for the publisher's tenant.

    body: the text of `SKILL.md` after its front matter; empty in lists. fingerprint: see `fingerprint_of`.
    size: bytes of all files. acknowledgement: why the publisher published it although it is dangerous.
    """

    id: str
    hub_skill_id: str
    tenant_id: str
    version: str
    cid: str
    description: str
    license: str | None
    changelog: str
    wants: SkillWants
    verdict: Verdict
    fingerprint: str
    files: int
    size: int
    created_at: datetime
    acknowledgement: str | None = None
    body: str = ""


@dataclass(frozen=True)
class HubListing:
    """A published skill with one of its versions: in lists the newest."""

    skill: HubSkill
    version: HubVersion


@dataclass(frozen=True)
class HubFilter:
    """Filter of a list. terms: lower-case words that all occur in a skill's texts. prefix: begin of the name."""

    terms: Sequence[str] = ()
    category: str | None = None
    featured: bool | None = None
    prefix: str | None = None
    sort: HubSort = HubSort.POPULAR


@dataclass(frozen=True)
class Publication:
    """What a publisher says about a version; None keeps what the skill had.

    version: None takes that of the files, or the next one. acknowledgement: the reason for publishing files that the
    check calls dangerous, which installers see. is_bundled: they come with Roost.
    """

    version: str | None = None
    changelog: str = ""
    category: str | None = None
    tags: Sequence[str] | None = None
    author_name: str | None = None
    author_url: str | None = None
    author_logo_url: str | None = None
    featured: bool | None = None
    acknowledgement: str | None = None
    is_bundled: bool = False


@dataclass(frozen=True)
class HubCursor:
    """Position of the last row of a page in a list of one order."""

    sort: HubSort
    value: Any
    id: str

    @classmethod
    def parse(cls, token: str, sort: HubSort) -> "HubCursor":
        """Parse a token of a list in that order. Raises InvalidHubCursor."""
        try:
            order, value, row_id = json.loads(base64.urlsafe_b64decode(token.encode()))
            if order != sort:
                raise InvalidHubCursor
            return cls(sort, _parse_value(sort, value), _parse_text(row_id, 36))
        except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
            raise InvalidHubCursor from None

    @classmethod
    def after(cls, skill: HubSkill, sort: HubSort) -> "HubCursor":
        """Return the position of a skill."""
        values = {
            HubSort.POPULAR: skill.install_count,
            HubSort.NEWEST: skill.created_at,
            HubSort.NAME: skill.name,
        }
        return cls(sort, values[sort], skill.id)

    def token(self) -> str:
        value = self.value.isoformat() if isinstance(self.value, datetime) else self.value
        return base64.urlsafe_b64encode(json.dumps([self.sort, value, self.id]).encode()).decode()


@dataclass(frozen=True)
class HubReference:
    """A published skill as a caller names it: by `@owner/name`, or by its id or a name alone."""

    name: str
    owner: str | None = None


def holder_of(version_id: str) -> str:
    """Return the name under which a published version holds its pack."""
    return f"hub/{version_id}"


def parse_reference(text: str, owner: str | None = None) -> HubReference:
    """Parse `@owner/name`, `owner/name`, a name or an id."""
    if owner is None and "/" in text:
        owner, _, text = text.partition("/")
    return HubReference(text, owner.removeprefix("@").lower() if owner else None)


def check_tag(tag: str | None) -> None:
    """Raise HubVersionNotFound for a tag that no skill has."""
    if tag not in {None, LATEST_TAG}:
        raise HubVersionNotFound


def parse_terms(query: str) -> Sequence[str]:
    """Return the words of a query. Raises InvalidHubRequest."""
    if len(query) > QUERY_LIMIT:
        raise InvalidHubRequest(f"q must be at most {QUERY_LIMIT} characters, got {len(query)}")
    return list(dict.fromkeys(query.lower().split()))[:TERMS_LIMIT]


def parse_label(text: str, field_name: str) -> str:
    """Return a category or tag in lower case. Raises InvalidHubRequest."""
    label = " ".join(text.lower().split())
    if len(label) > TAG_LENGTH or not _LABEL.fullmatch(label):
        raise InvalidHubRequest(
            f"{field_name} must be words of letters and digits, at most {TAG_LENGTH} characters, got {text[:80]!r}"
        )
    return label


def parse_tags(tags: Sequence[str]) -> Sequence[str]:
    """Return the distinct tags. Raises InvalidHubRequest."""
    if len(tags) > TAGS_LIMIT:
        raise InvalidHubRequest(f"tags must be at most {TAGS_LIMIT}, got {len(tags)}")
    return list(dict.fromkeys(parse_label(tag, "tags") for tag in tags))


def parse_url(text: str) -> str | None:
    """Return a web address. Raises InvalidHubRequest."""
    if text and not _URL.fullmatch(text):
        raise InvalidHubRequest(f"An author's URL must start with http:// or https://, got {text[:80]!r}")
    return text or None


def owner_handle(tenant_name: str, attempt: int) -> str:
    """Return a handle for a tenant; each further attempt, because the last one is taken, has another number.

    Of a name that is an e-mail address, only the part before the `@` becomes public.
    """
    name = tenant_name.lstrip("@").partition("@")[0]
    handle = _NOT_OF_OWNER.sub("-", name.lower()).strip("-")[: OWNER_LENGTH - 4].strip("-") or "tenant"
    return handle if attempt == 0 else f"{handle}-{attempt + 1}"


def search_text(skill: HubSkill) -> str:
    """Return the lower-case text in which words of a query are searched."""
    return " ".join((skill.slug, skill.description, skill.category, *skill.tags, skill.author_name)).lower()


def fingerprint_of(bundle: Bundle) -> str:
    """Return the hash by which clients of ClawHub recognise a version of their files; hidden files do not count."""
    paths = [path for path in bundle.files if not any(part.startswith(".") for part in path.split("/"))]
    lines = [
        f"{path}:{hashlib.sha256(bundle.files[path].content).hexdigest()}" for path in sorted(paths, key=_collation_key)
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def skill_body(content: bytes) -> str:
    """Return the text of a valid `SKILL.md` after its front matter."""
    return _FENCE.split(content.decode("utf-8-sig").replace("\r\n", "\n"), 2)[-1].strip()


def _parse_value(sort: HubSort, value: Any) -> Any:
    """Return a value that a database can compare. Raises ValueError, TypeError."""
    if sort is HubSort.NAME:
        return _parse_text(value, 64)
    if sort is HubSort.NEWEST:
        return datetime.fromisoformat(value).astimezone(UTC)
    if not 0 <= int(value) <= _COUNT_LIMIT:
        raise ValueError
    return int(value)


def _parse_text(value: Any, limit: int) -> str:
    """Return text that a database can store. Raises ValueError."""
    if not isinstance(value, str) or len(value) > limit or not is_storable(value):
        raise ValueError
    return value


def _collation_key(path: str) -> tuple[Sequence[int], Sequence[bool]]:
    """Compare letters first, and their case only between paths that are equal otherwise."""
    weights = [_COLLATION.find(char) if char in _COLLATION else 1000 + ord(char) for char in path.lower()]
    return weights, [char.isupper() for char in path]
