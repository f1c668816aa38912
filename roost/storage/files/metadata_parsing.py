"""Parse and validate file metadata from forms, JSON and `Upload-Metadata`."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from roost.core import clock
from roost.core.sanitize import is_storable
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.content.unixfs.profile import V1, ImportProfile, get_profile
from roost.storage.files.model import NAME_LIMIT, InvalidFileMetadata, Keyvalues, check_keyvalues

_VERSIONS = {"0": "v0", "1": "v1"}
_FLAGS = {"": False, "false": False, "0": False, "true": True, "1": True}
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def parse_network(text: str) -> ContentNetwork:
    """Parse a network. Raises InvalidFileMetadata."""
    try:
        return ContentNetwork(text)
    except ValueError:
        raise InvalidFileMetadata("network must be public or private") from None


def parse_name(text: str | None) -> str | None:
    """Parse a file name; an empty one is None. Raises InvalidFileMetadata."""
    if text is not None and (len(text) > NAME_LIMIT or not is_storable(text)):
        raise InvalidFileMetadata(f"name must be text of at most {NAME_LIMIT} characters")
    return text or None


def parse_group_id(text: str | None) -> str | None:
    """Parse a group id; an empty one is None. Raises InvalidFileMetadata."""
    if text is not None and not is_storable(text):
        raise InvalidFileMetadata("group_id must be the id of a group")
    return text or None


def parse_keyvalues(value: object) -> Keyvalues:
    """Parse an object, one below `keyvalues`, or the JSON of either; drop nulls. Raises InvalidFileMetadata."""
    if isinstance(value, str):
        value = _decode_json(value) if value.strip() else {}
    if not isinstance(value, Mapping):
        raise InvalidFileMetadata("keyvalues must be an object")
    pairs = cast("Mapping[str, Any]", value)
    if isinstance(inner := pairs.get("keyvalues"), Mapping) and len(pairs) == 1:
        pairs = cast("Mapping[str, Any]", inner)
    pairs = {key: value for key, value in pairs.items() if value is not None}
    if not all(is_storable(key) and (not isinstance(value, str) or is_storable(value)) for key, value in pairs.items()):
        raise InvalidFileMetadata("keyvalues must not contain NUL or lone surrogates")
    return check_keyvalues(pairs)


def parse_expiry(seconds: str | int | None) -> datetime | None:
    """Parse an expiry time in Unix seconds, which must be in the future. Raises InvalidFileMetadata."""
    if seconds is None or seconds == "":
        return None
    if isinstance(seconds, str):
        if not seconds.isascii() or not seconds.isdigit() or len(seconds) > 15:
            raise InvalidFileMetadata("expires_at must be Unix seconds")
        seconds = int(seconds)
    if not clock.utc_now().timestamp() < seconds < _LATEST:
        raise InvalidFileMetadata("expires_at must be in the future")
    return datetime.fromtimestamp(seconds, UTC)


def parse_profile(text: str | None) -> ImportProfile:
    """Parse `v0`, `v1`, `unixfs-v1-2025`, or a version number; the default is v1. Raises InvalidFileMetadata."""
    try:
        return get_profile(_VERSIONS.get(text, text)) if text else V1
    except MalformedContent as error:
        raise InvalidFileMetadata(error.message) from None


def parse_flag(text: str | None) -> bool:
    """Parse a form field, which may be empty. Raises InvalidFileMetadata."""
    try:
        return _FLAGS[(text or "").strip().lower()]
    except KeyError:
        raise InvalidFileMetadata(f"a flag must be true or false, got {text!r}") from None


def _decode_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique_pairs)
    except ValueError:
        raise InvalidFileMetadata("keyvalues must be JSON") from None


def _unique_pairs(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidFileMetadata("keyvalues must not have a key twice")
    return found
