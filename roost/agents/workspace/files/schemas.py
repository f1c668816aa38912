"""Requests and responses of files (contract: File upload; the others are beyond it)."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from roost.agents.workspace.files.model import PAGE_LIMIT, FilePage, spell_path
from roost.warden_client.files import FolderEntry
from roost.warden_client.tree import ChangedPaths
from roost.web.schemas import ApiSchema, Moment


class UploadRequest(ApiSchema):
    filename: Annotated[str, Field(json_schema_extra={"minLength": 1})]
    content_base64: str


class UploadResponse(ApiSchema):
    path: str
    filename: str
    size: int


class ListFilesQuery(ApiSchema):
    path: str = "."
    recursive: bool = False
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT
    cursor: str | None = None


class MoveFileRequest(ApiSchema):
    path: str
    target: str


class MakeFolderRequest(ApiSchema):
    path: str


class FileEntryRecord(ApiSchema):
    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    executable: bool
    modified_at: Moment

    @classmethod
    def from_entry(cls, entry: FolderEntry) -> Self:
        path = spell_path(entry.name)
        executable = entry.kind == "file" and bool(entry.mode & 0o100)
        return cls(path=path, kind=entry.kind, size=entry.size, executable=executable, modified_at=entry.modified_at)


class FileListRecord(ApiSchema):
    entries: Sequence[FileEntryRecord]
    next_cursor: str | None

    @classmethod
    def from_page(cls, page: FilePage) -> Self:
        return cls(entries=[FileEntryRecord.from_entry(entry) for entry in page.entries], next_cursor=page.next_cursor)


class ChangedFilesRecord(ApiSchema):
    """Paths of entries that changed; a folder stands for all below it. If not `complete`, anything may have changed."""

    paths: Sequence[str]
    complete: bool

    @classmethod
    def from_changes(cls, changes: ChangedPaths) -> Self:
        return cls(paths=sorted(map(spell_path, changes.paths)), complete=changes.is_complete)


class SavedFileRecord(ApiSchema):
    path: str
    size: int


class FileActionRecord(ApiSchema):
    success: bool = True
