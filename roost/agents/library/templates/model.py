"""Templates, their versions, and where they come from. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.agents.library.templates.manifest import ManifestFault, TemplateManifest
from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict
from roost.storage.content.model import ContentNetwork, ContentScope

TEMPLATE_LIMIT = 200
"""Templates of a tenant that are not archived."""
KEPT_VERSIONS = 10
PAGE_SIZE, MAX_PAGE_SIZE = 20, 100
README_LIMIT = 256 * 1024


class TemplateStatus(StrEnum):
    """A draft is visible to its tenant alone. There is no review: templates are published when they are submitted."""

    DRAFT = "draft"
    PUBLISHED = "published"
    ARCHIVED = "archived"


@dataclass(frozen=True)
class TemplateSource:
    """A folder of a public Git repository; without `ref` its default branch, without `path` its root."""

    git_url: str
    ref: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Submission:
    """A request to make a template; `name` and `slug` replace those of the manifest."""

    source: TemplateSource
    name: str | None = None
    slug: str | None = None
    is_public: bool = True


@dataclass(frozen=True)
class TemplateUpdate:
    """A request to fetch a template again; None keeps what it has.

    With another `git_url`, the reference and the path of the former one do not count.
    """

    git_url: str | None = None
    ref: str | None = None
    path: str | None = None
    name: str | None = None
    slug: str | None = None
    is_public: bool | None = None


@dataclass(frozen=True)
class Template:
    """A template as its newest version describes it.

    name_override: a name that replaces the manifest's. secrets: as in the manifest. skills: CIDs and slugs.
    snapshot_cid: of the UnixFS directory with the files of `workspace/`.
    """

    id: str
    tenant_id: str
    slug: str
    name: str
    name_override: str | None
    description: str
    category: str
    tags: Sequence[str]
    author_name: str
    author_url: str | None
    author_logo_url: str | None
    engine: str | None
    vibe: str | None
    emoji: str | None
    secrets: Sequence[Mapping[str, Any]]
    skills: Sequence[str]
    status: TemplateStatus
    featured: bool
    git_url: str
    git_ref: str | None
    git_path: str | None
    commit_sha: str
    snapshot_cid: str
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def source(self) -> TemplateSource:
        return TemplateSource(self.git_url, self.git_ref, self.git_path)


@dataclass(frozen=True)
class TemplateVersion:
    """What a commit of the repository held: `manifest` as a JSON object, and the files of `workspace/` by their CID.

    pack_id: holds the files, which the template keeps as long as the version exists.
    """

    template_id: str
    version: int
    commit_sha: str
    manifest: Mapping[str, Any]
    readme: str
    snapshot_cid: str
    files: int
    size: int
    pack_id: str
    created_at: datetime

    def parse_manifest(self) -> TemplateManifest:
        return TemplateManifest.from_document(self.manifest)


@dataclass(frozen=True)
class TemplateFile:
    path: str
    size: int


@dataclass(frozen=True)
class InspectedTemplate:
    """A template as a commit describes it; without a manifest, `errors` say why."""

    commit_sha: str
    manifest: TemplateManifest | None
    readme: str
    files: Sequence[TemplateFile]
    errors: Sequence[ManifestFault]
    warnings: Sequence[ManifestFault]


@dataclass(frozen=True)
class TemplateFilter:
    """Conditions of a list; `text` is searched for in slug, name and description."""

    category: str | None = None
    text: str | None = None
    featured: bool | None = None


def template_scope(tenant_id: str) -> ContentScope:
    """Return where the files of a tenant's templates are."""
    return ContentScope(ContentNetwork.PRIVATE, tenant_id)


class TemplateNotFound(NotFound):
    """Unknown id or slug, archived, or a draft of another tenant; the response does not say which."""

    message = "Template not found"


class InvalidTemplate(InvalidInput):
    """The repository holds no valid template; the body lists `errors` and `warnings`, each with path and message."""

    message = "Invalid template"


class TemplateSlugTaken(ResourceConflict):
    message = "Another template has this slug"


class TemplateChanged(ResourceConflict):
    message = "The template was changed by another request"


class TemplateLimitReached(AccessDenied):
    message = "Template limit reached"
