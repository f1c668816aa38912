"""Shapes of uploads; what the contract leaves open follows the reference service's clients."""

from roost.storage.files.model import File
from roost.storage.files.schemas import FileFields
from roost.web.schemas import StorageSchema


class UploadedFileRecord(FileFields):
    """`is_duplicate`: the tenant had this content on this network; the answer is the file that it had. At a signed
    address it is not told.
    """

    is_duplicate: bool


class UploadLimitsRecord(StorageSchema):
    """max_size: bytes of one upload. max_files: of one folder. stored: bytes that are kept; max_stored: as many as may
    be, not there where it is any number.
    """

    max_size: int
    max_files: int
    stored: int
    max_stored: int | None = None


def uploaded(file: File) -> UploadedFileRecord:
    return UploadedFileRecord.of(file, is_duplicate=file.is_duplicate)
