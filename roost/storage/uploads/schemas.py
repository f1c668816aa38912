"""Shapes of uploads."""

from roost.storage.files.model import File
from roost.storage.files.schemas import FileFields
from roost.web.schemas import StorageSchema


class UploadedFileRecord(FileFields):
    """`is_duplicate`: the tenant already had this content on this network; the response is the existing file.

    `vectorized` is always false; the Go command line expects the field.
    """

    is_duplicate: bool
    vectorized: bool = False


class UploadLimitsRecord(StorageSchema):
    """Bytes of one upload, files of one folder, stored bytes and their limit, which is absent if there is none."""

    max_size: int
    max_files: int
    stored: int
    max_stored: int | None = None


def uploaded_file(file: File) -> UploadedFileRecord:
    return UploadedFileRecord.from_file(file, is_duplicate=file.is_duplicate)
