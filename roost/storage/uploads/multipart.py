"""A form with files (multipart/form-data, RFC 7578), read as it comes: files go to the upload, fields are kept.

Nothing is held but the piece that is being read and small fields; how many parts there are, how long their heads and
fields, and how much is neither, are all bounded.
"""

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from multipart import (  # pyright: ignore[reportMissingTypeStubs] - it has none
    MultipartError,
    MultipartSegment,
    ParserLimitReached,
    PushMultipartParser,
    parse_options_header,  # pyright: ignore[reportUnknownVariableType] - nor types for this
)

from roost.storage.uploads.errors import InvalidUpload, TooManyFiles
from roost.storage.uploads.model import FILES_LIMIT
from roost.storage.uploads.service import UploadInProgress

Fields = Mapping[str, str]

_FIELDS = 32
_FIELD_BYTES = 64 * 1024
_FILE_FIELDS = frozenset({"file", "file[]", "files"})
_HEAD_LINE, _HEAD_LINES = 8 * 1024, 8
_BESIDE = 1024**2
_BESIDE_EACH = 16 * 1024


async def receive(stream: AsyncIterable[bytes], content_type: str, upload: UploadInProgress) -> Fields:
    """The fields of the form, when all its files are in the upload.

    Raises InvalidUpload, TooManyFiles, and what the upload raises.
    """
    reading = _FormReader(upload)
    parser = _parser(content_type)
    total = 0
    try:
        async for chunk in stream:
            if not chunk:
                continue
            for event in parser.parse(chunk):
                await reading.take(event)
            total += len(chunk)
            if total - upload.size > _BESIDE + _BESIDE_EACH * reading.parts:
                raise InvalidUpload("Invalid form")
        parser.close()
    except ParserLimitReached as error:
        raise TooManyFiles if reading.parts > FILES_LIMIT else InvalidUpload(f"Invalid form: {error}") from None
    except MultipartError as error:
        raise InvalidUpload(f"Invalid form: {error}") from None
    return reading.fields


def _parser(content_type: str) -> PushMultipartParser:
    kind, options = cast("tuple[str, Mapping[str, str]]", parse_options_header(content_type))
    boundary = options.get("boundary", "")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= 200:
        raise InvalidUpload("A form (multipart/form-data) with a file is required")
    return PushMultipartParser(
        boundary,
        max_header_size=_HEAD_LINE,
        max_header_count=_HEAD_LINES,
        max_segment_count=FILES_LIMIT + _FIELDS,
    )


@dataclass
class _FormReader:
    """Where in the form we are."""

    upload: UploadInProgress
    fields: dict[str, str] = field(default_factory=dict[str, str])
    parts: int = 0
    _name: str = ""
    _filename: str | None = None
    _value: bytearray = field(default_factory=bytearray)

    async def take(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._begin(event)
        elif event is None:
            await self._end()
        elif self._filename is not None:
            await self.upload.write(event)
        else:
            self._value += event
            if len(self._value) > _FIELD_BYTES:
                raise InvalidUpload(f"{self._name[:80]}: too long")

    def _begin(self, segment: MultipartSegment) -> None:
        self.parts += 1
        self._name, self._filename = segment.name or "", segment.filename
        self._value.clear()
        if self._name in _FILE_FIELDS:
            self._filename = self._filename or "file"
        elif self._filename is not None:
            raise InvalidUpload(f"{self._name[:80]}: not a field for files")
        elif self._name in self.fields:
            raise InvalidUpload(f"{self._name[:80]}: given twice")

    async def _end(self) -> None:
        if self._filename is not None:
            await self.upload.end_file(self._filename)
            return
        if len(self.fields) == _FIELDS:
            raise InvalidUpload("Too many fields")
        try:
            self.fields[self._name] = self._value.decode()
        except UnicodeDecodeError:
            raise InvalidUpload(f"{self._name[:80]}: not UTF-8") from None
