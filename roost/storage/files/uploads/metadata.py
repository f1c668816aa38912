"""Parse the fields of forms and `Upload-Metadata`, which have the same names."""

from collections.abc import Mapping

from roost.storage.content.model import ContentNetwork
from roost.storage.files import metadata_parsing
from roost.storage.files.model import FileMetadata
from roost.storage.files.uploads.model import UploadMetadata


def parse_upload_metadata(fields: Mapping[str, str]) -> UploadMetadata:
    """Parse `network`, `name`, `group_id` (or `group`), `keyvalues`, `expires_at`, `cid_version`, `car`.

    Raises InvalidFileMetadata.
    """
    version = fields.get("cid_version")
    return UploadMetadata(
        network=metadata_parsing.parse_network(fields.get("network") or ContentNetwork.PRIVATE),
        file_metadata=FileMetadata(
            name=metadata_parsing.parse_name(fields.get("name")),
            keyvalues=metadata_parsing.parse_keyvalues(fields.get("keyvalues", "")),
            group_id=metadata_parsing.parse_group_id(fields.get("group_id") or fields.get("group")),
            expires_at=metadata_parsing.parse_expiry(fields.get("expires_at")),
        ),
        profile=metadata_parsing.parse_profile(version) if version else None,
        car=metadata_parsing.parse_flag(fields.get("car")),
    )
