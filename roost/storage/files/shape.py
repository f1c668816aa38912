"""What every answer that tells of a file has in common, here and in the slices above."""

from typing import Any, Self

from roost.storage.content.model import Network
from roost.storage.files.model import File, Keyvalues
from roost.web.wire import V3, Moment


class FileShape(V3):
    """`size` is the content's, in bytes; `number_of_files` is 1 but for folders."""

    id: str
    user_id: str
    name: str | None
    cid: str
    size: int
    number_of_files: int
    mime_type: str
    keyvalues: Keyvalues
    group_id: str | None
    network: Network
    vectorized: bool = False
    created_at: Moment
    expires_at: Moment | None

    @classmethod
    def of(cls, file: File, **more: Any) -> Self:
        """more: the fields that the kind of answer has beside these."""
        return cls(
            id=file.id,
            user_id=file.tenant_id,
            name=file.note.name,
            cid=file.cid,
            size=file.size,
            number_of_files=file.number_of_files,
            mime_type=file.mime_type,
            keyvalues=file.note.keyvalues,
            group_id=file.note.group_id,
            network=file.network,
            created_at=file.created_at,
            expires_at=file.note.expires_at,
            **more,
        )
