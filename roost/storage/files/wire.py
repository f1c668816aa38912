"""Shapes of files; what the contract leaves open follows the reference service's clients."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from roost.storage.files import said
from roost.storage.files.errors import NothingToChange
from roost.storage.files.model import PAGE_DEFAULT, File, Filter, Note
from roost.storage.files.shape import FileShape
from roost.storage.unixfs.cid import Cid
from roost.web.wire import V3, Moment, Text

_PAIR = re.compile(r"(?:keyvalues|metadata)\[(?!keyvalues\]|name\])(.+)\]")


def _upper(text: object) -> object:
    return text.upper() if isinstance(text, str) else text


class Chosen(V3):
    """The filters of a list, but for keyvalues, whose names are the caller's."""

    limit: int = PAGE_DEFAULT
    name: Text | None = None
    group: Text | None = None
    mime_type: Annotated[Text | None, Field(alias="mimeType")] = None
    cid: str | None = None
    order: Annotated[Literal["ASC", "DESC"], BeforeValidator(_upper)] = "DESC"
    page_token: Annotated[str | None, Field(alias="pageToken")] = None
    cid_pending: Annotated[bool, Field(alias="cidPending")] = False
    metadata: str | None = None

    def filter(self, query: Mapping[str, str]) -> Filter:
        """Raises InvalidCid, InvalidMetadata."""
        pairs = {found[1]: value for key, value in query.items() if (found := _PAIR.fullmatch(key))}
        return Filter(
            name=self.name or None,
            group_id=self.group or None,
            mime_type=self.mime_type or None,
            cid=Cid.spelled(self.cid) if self.cid else None,
            keyvalues=said.keyvalues({**pairs, **said.keyvalues(self.metadata or "")}),
            ascending=self.order == "ASC",
            nothing=self.cid_pending,
        )


class Change(V3):
    """What is given is changed; a null among keyvalues takes that one away."""

    name: Text | None = None
    keyvalues: dict[str, str | int | float | bool | None] | None = None
    expires_at: int | None = None

    def apply(self, note: Note) -> Note:
        """Raises InvalidMetadata, NothingToChange."""
        if not self.model_fields_set & {"name", "keyvalues", "expires_at"}:
            raise NothingToChange
        if self.name is not None:
            note = replace(note, name=said.name(self.name))
        if self.keyvalues is not None:
            note = replace(note, keyvalues=said.keyvalues({**note.keyvalues, **self.keyvalues}))
        if "expires_at" in self.model_fields_set:
            note = replace(note, expires_at=said.expiry(self.expires_at))
        return note


class FileItem(FileShape):
    updated_at: Moment


class FileList(V3):
    """`next_page_token` is null on the last page."""

    files: Sequence[FileItem]
    next_page_token: str | None


def item(file: File) -> FileItem:
    return FileItem.of(file, updated_at=file.updated_at)


def listed(files: Sequence[File], token: str | None) -> FileList:
    return FileList(files=[item(file) for file in files], next_page_token=token)
