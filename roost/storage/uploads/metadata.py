"""The label of an upload from the texts of a form or of upload metadata, which use the same words."""

from collections.abc import Mapping

from roost.storage.content.model import ContentNetwork
from roost.storage.files import metadata_parsing
from roost.storage.files.model import FileMetadata
from roost.storage.uploads.model import UploadMetadata


def label_of(fields: Mapping[str, str]) -> UploadMetadata:
    """From `network`, `name`, `group_id` (or `group`), `keyvalues`, `expires_at`, `cid_version`, `car`.

    Raises InvalidMetadata.
    """
    version = fields.get("cid_version")
    return UploadMetadata(
        network=metadata_parsing.network(fields.get("network") or ContentNetwork.PRIVATE),
        note=FileMetadata(
            name=metadata_parsing.name(fields.get("name")),
            keyvalues=metadata_parsing.keyvalues(fields.get("keyvalues", "")),
            group_id=metadata_parsing.group(fields.get("group_id") or fields.get("group")),
            expires_at=metadata_parsing.expiry(fields.get("expires_at")),
        ),
        profile=metadata_parsing.profile(version) if version else None,
        car=metadata_parsing.flag(fields.get("car")),
    )
