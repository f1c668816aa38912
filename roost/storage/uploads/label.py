"""The label of an upload from the texts of a form or of upload metadata, which use the same words."""

from collections.abc import Mapping

from roost.storage.content.model import Network
from roost.storage.files import said
from roost.storage.files.model import Note
from roost.storage.uploads.model import Label


def label_of(fields: Mapping[str, str]) -> Label:
    """From `network`, `name`, `group_id` (or `group`), `keyvalues`, `expires_at`, `cid_version`, `car`.

    Raises InvalidMetadata.
    """
    version = fields.get("cid_version")
    return Label(
        network=said.network(fields.get("network") or Network.PRIVATE),
        note=Note(
            name=said.name(fields.get("name")),
            keyvalues=said.keyvalues(fields.get("keyvalues", "")),
            group_id=said.group(fields.get("group_id") or fields.get("group")),
            expires_at=said.expiry(fields.get("expires_at")),
        ),
        profile=said.profile(version) if version else None,
        car=said.flag(fields.get("car")),
    )
