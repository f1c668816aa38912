"""Shapes of files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt

from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import metadata_parsing
from roost.storage.files.model import PAGE_DEFAULT, EmptyFileUpdate, File, FileFilter, FileMetadata, Keyvalues
from roost.web.schemas import Moment, StorageSchema, Text, Uppercase


class FileFields(StorageSchema):
    """Common fields of file records; `size` is in bytes, `number_of_files` is 1 except for folders."""

    id: str
    user_id: str
    name: str | None
    cid: str
    size: int
    number_of_files: int
    mime_type: str
    keyvalues: Keyvalues
    group_id: str | None
    network: ContentNetwork
    created_at: Moment
    expires_at: Moment | None

    @classmethod
    def from_file(cls, file: File) -> Self:
        return cls(**{**vars(file), **vars(file.metadata)}, user_id=file.tenant_id)


_PAIR = re.compile(r"(?:keyvalues|metadata)\[(?!keyvalues\]|name\])(.+)\]")


class FileListParameters(StorageSchema):
    """Query parameters of a file list, except keyvalues, whose names are free."""

    limit: int = PAGE_DEFAULT
    name: Text | None = None
    group: Text | None = None
    mime_type: Annotated[Text | None, Field(alias="mimeType")] = None
    cid: str | None = None
    order: Annotated[Literal["ASC", "DESC"], Uppercase] = "DESC"
    page_token: Annotated[str | None, Field(alias="pageToken")] = None
    cid_pending: Annotated[bool, Field(alias="cidPending")] = False
    metadata: str | None = None

    def filter(self, query: Mapping[str, str]) -> FileFilter:
        """Build the filter. Raises InvalidCid, InvalidFileMetadata."""
        pairs = {found[1]: value for key, value in query.items() if (found := _PAIR.fullmatch(key))}
        return FileFilter(
            name=self.name or None,
            group_id=self.group or None,
            mime_type=self.mime_type or None,
            cid=Cid.parse_spellings(self.cid) if self.cid else None,
            keyvalues=metadata_parsing.parse_keyvalues(
                {**pairs, **metadata_parsing.parse_keyvalues(self.metadata or "")}
            ),
            ascending=self.order == "ASC",
            nothing=self.cid_pending,
        )


class UpdateFileRequest(StorageSchema):
    """Only given fields change; a null value removes a key."""

    name: Text | None = None
    keyvalues: dict[str, str | int | float | bool | None] | None = None
    expires_at: StrictInt | None = None

    def apply(self, metadata: FileMetadata) -> FileMetadata:
        """Apply the update. Raises InvalidFileMetadata, EmptyFileUpdate."""
        if not self.model_fields_set & {"name", "keyvalues", "expires_at"}:
            raise EmptyFileUpdate
        if self.name is not None:
            metadata = replace(metadata, name=metadata_parsing.parse_name(self.name))
        if self.keyvalues is not None:
            keyvalues = metadata_parsing.parse_keyvalues({**metadata.keyvalues, **self.keyvalues})
            metadata = replace(metadata, keyvalues=keyvalues)
        if "expires_at" in self.model_fields_set:
            metadata = replace(metadata, expires_at=metadata_parsing.parse_expiry(self.expires_at))
        return metadata


class FileItem(FileFields):
    updated_at: Moment


class FileTotal(StorageSchema):
    files: int
    bytes: int


class FileTotals(StorageSchema):
    """Files by network; content that two of them share counts twice here, and once as stored bytes."""

    public: FileTotal
    private: FileTotal


class FileList(StorageSchema):
    """`next_page_token` is null on the last page."""

    files: Sequence[FileItem]
    next_page_token: str | None


def file_list(files: Sequence[File], token: str | None) -> FileList:
    return FileList(files=[FileItem.from_file(file) for file in files], next_page_token=token)
