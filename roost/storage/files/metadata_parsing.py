"""What tenants say about a file, in forms, JSON and upload metadata, checked and brought into one shape."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from roost.core import clock
from roost.core.sanitize import is_storable
from roost.storage.content.model import ContentNetwork
from roost.storage.files.errors import InvalidFileMetadata
from roost.storage.files.model import NAME_LIMIT, Keyvalues, checked_keyvalues
from roost.storage.unixfs.errors import MalformedContent
from roost.storage.unixfs.profile import V1, ImportProfile, named

_VERSIONS = {"0": "v0", "1": "v1"}
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def network(text: str) -> ContentNetwork:
    """Raises InvalidMetadata."""
    try:
        return ContentNetwork(text)
    except ValueError:
        raise InvalidFileMetadata("network must be public or private") from None


def name(text: str | None) -> str | None:
    """A name of a file; none for an empty one. Raises InvalidMetadata."""
    if text is not None and (len(text) > NAME_LIMIT or not is_storable(text)):
        raise InvalidFileMetadata(f"name is a text of at most {NAME_LIMIT} characters")
    return text or None


def group(text: str | None) -> str | None:
    """The id of a group; none for an empty one. Raises InvalidMetadata."""
    if text is not None and not is_storable(text):
        raise InvalidFileMetadata("group_id is the id of a group")
    return text or None


def keyvalues(said: object) -> Keyvalues:
    """A map, or one below `keyvalues`, or the JSON text of either; nulls are left out. Raises InvalidMetadata."""
    if isinstance(said, str):
        said = _decoded(said) if said.strip() else {}
    if not isinstance(said, Mapping):
        raise InvalidFileMetadata("keyvalues must be an object")
    pairs = cast("Mapping[str, Any]", said)
    if isinstance(inner := pairs.get("keyvalues"), Mapping) and len(pairs) == 1:
        pairs = cast("Mapping[str, Any]", inner)
    pairs = {key: value for key, value in pairs.items() if value is not None}
    if not all(is_storable(key) and (not isinstance(value, str) or is_storable(value)) for key, value in pairs.items()):
        raise InvalidFileMetadata("keyvalues must not contain NUL or lone surrogates")
    return checked_keyvalues(pairs)


def expiry(seconds: str | int | None) -> datetime | None:
    """When a file goes, from Unix seconds that are in the future. Raises InvalidMetadata."""
    if seconds is None or seconds == "":
        return None
    if isinstance(seconds, str):
        if not seconds.isascii() or not seconds.isdigit() or len(seconds) > 15:
            raise InvalidFileMetadata("expires_at must be Unix seconds")
        seconds = int(seconds)
    if not clock.utc_now().timestamp() < seconds < _LATEST:
        raise InvalidFileMetadata("expires_at must be in the future")
    return datetime.fromtimestamp(seconds, UTC)


def profile(text: str | None) -> ImportProfile:
    """`v0`, `v1`, `unixfs-v1-2025`, or the number of a version; v1 for nothing. Raises InvalidMetadata."""
    try:
        return named(_VERSIONS.get(text, text)) if text else V1
    except MalformedContent as error:
        raise InvalidFileMetadata(error.message) from None


def flag(text: str | None) -> bool:
    """Whether a form says `true`."""
    return (text or "").lower() in {"true", "1"}


def _decoded(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        raise InvalidFileMetadata("keyvalues must be JSON") from None


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidFileMetadata("keyvalues must not have a key twice")
    return found
