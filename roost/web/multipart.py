"""Streaming reader of forms with files (multipart/form-data, RFC 7578).

Files stream into an upload; fields are kept in memory. Parts, headers, fields and overhead are bounded.
"""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from multipart import (  # pyright: ignore[reportMissingTypeStubs] - it has none
    MultipartError,
    MultipartSegment,
    ParserLimitReached,
    PushMultipartParser,
    parse_options_header,  # pyright: ignore[reportUnknownVariableType] - nor types for this
)

from roost.core.problem import InvalidInput, PayloadTooLarge

Fields = Mapping[str, str]

_MAX_FIELDS = 32
_MAX_FIELD_BYTES = 64 * 1024  # of all fields together
_FILE_FIELDS = frozenset({"file", "file[]", "files"})
_MAX_HEADER_BYTES, _MAX_HEADERS = 8 * 1024, 8
_MAX_OVERHEAD = 1024**2
_MAX_PART_OVERHEAD = 16 * 1024


class InvalidForm(InvalidInput):
    message = "Invalid form"


class TooManyFormFiles(PayloadTooLarge):
    message = "Too many files"


class FormUpload(Protocol):
    """Receives the files of a form, one after the other."""

    @property
    def size(self) -> int:
        """Bytes received."""
        ...

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write the next bytes of the current file."""
        ...

    async def end_file(self, filename: str) -> object:
        """End the current file, named like `folder/a.txt`."""
        ...


async def receive_form(stream: AsyncIterable[bytes], content_type: str, upload: FormUpload, files_limit: int) -> Fields:
    """Read a form: write its files to the upload and return its fields.

    Raises InvalidForm, TooManyFormFiles and the errors of the upload.
    """
    reader = _FormReader(upload)
    parser = _parser(content_type, files_limit)
    total = 0
    try:
        async for chunk in stream:
            if not chunk:
                continue
            for event in parser.parse(chunk):
                await reader.handle_event(event)
            total += len(chunk)
            if total - upload.size > _MAX_OVERHEAD + _MAX_PART_OVERHEAD * reader.parts:
                raise InvalidForm
        parser.close()
    except ParserLimitReached as error:
        raise TooManyFormFiles if reader.parts > files_limit else InvalidForm(f"Invalid form: {error}") from None
    except MultipartError as error:
        raise InvalidForm(f"Invalid form: {error}") from None
    return reader.fields


def _parser(content_type: str, files_limit: int) -> PushMultipartParser:
    kind, options = cast("tuple[str, Mapping[str, str]]", parse_options_header(content_type))
    boundary = options.get("boundary", "")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= 200:
        raise InvalidForm("A form (multipart/form-data) with a file is required")
    return PushMultipartParser(
        boundary,
        max_header_size=_MAX_HEADER_BYTES,
        max_header_count=_MAX_HEADERS,
        max_segment_count=files_limit + _MAX_FIELDS,
    )


@dataclass
class _FormReader:
    upload: FormUpload
    fields: dict[str, str] = field(default_factory=dict[str, str])
    parts: int = 0
    _name: str = ""
    _filename: str | None = None
    _value: bytearray = field(default_factory=bytearray)
    _field_bytes: int = 0

    async def handle_event(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._begin(event)
        elif event is None:
            await self._end()
        elif self._filename is not None:
            await self.upload.write(event)
        else:
            self._value += event
            self._field_bytes += len(event)
            if self._field_bytes > _MAX_FIELD_BYTES:
                raise InvalidForm(f"{self._name[:80]}: too long")

    def _begin(self, segment: MultipartSegment) -> None:
        self.parts += 1
        self._name, self._filename = segment.name or "", segment.filename
        self._value.clear()
        if self._name in _FILE_FIELDS:
            self._filename = self._filename or "file"
        elif self._filename is not None:
            raise InvalidForm(f"{self._name[:80]}: not a field for files")
        elif self._name in self.fields:
            raise InvalidForm(f"{self._name[:80]}: given twice")

    async def _end(self) -> None:
        if self._filename is not None:
            await self.upload.end_file(self._filename)
            return
        if len(self.fields) == _MAX_FIELDS:
            raise InvalidForm("Too many fields")
        try:
            self.fields[self._name] = self._value.decode()
        except UnicodeDecodeError:
            raise InvalidForm(f"{self._name[:80]}: not UTF-8") from None
