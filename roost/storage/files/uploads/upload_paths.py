"""Paths of uploaded files, without names that are unsafe to unpack."""

from collections.abc import Sequence

from roost.storage.files.uploads.errors import InvalidUpload
from roost.storage.files.uploads.model import DEPTH_LIMIT

_NAME_BYTES = 255


def parse_upload_path(filename: str) -> Sequence[str]:
    """Split `folder/a.txt` into folders and name. Raises InvalidUpload."""
    path = filename.split("/")
    if len(path) > DEPTH_LIMIT:
        raise InvalidUpload(f"The path has {len(path)} segments; at most {DEPTH_LIMIT} are allowed")
    if not all(map(_is_name, path)):
        raise InvalidUpload("Invalid file name")
    return path


def _is_name(name: str) -> bool:
    if name in {"", ".", ".."} or "\\" in name or any(ord(sign) < 32 or ord(sign) == 127 for sign in name):
        return False
    try:
        return len(name.encode()) <= _NAME_BYTES
    except UnicodeEncodeError:
        return False
