"""Paths of uploaded files as clients send them. Nothing that could lead out of a folder where somebody unpacks it."""

from collections.abc import Sequence

from roost.storage.uploads.errors import InvalidUpload
from roost.storage.uploads.model import DEPTH_LIMIT

_NAME_BYTES = 255


def path_of(filename: str) -> Sequence[str]:
    """The folders and the name in `folder/a.txt`. Raises InvalidUpload."""
    path = filename.split("/")
    if len(path) > DEPTH_LIMIT:
        raise InvalidUpload(f"Folders may be {DEPTH_LIMIT} deep")
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
