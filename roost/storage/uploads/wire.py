"""Shapes of uploads; what the contract leaves open follows the reference service's clients."""

from roost.storage.content.model import Network
from roost.storage.files.model import File, Keyvalues
from roost.web.wire import V3, Moment


class Uploaded(V3):
    """`is_duplicate`: the tenant had this content on this network; the answer is the file that it had."""

    id: str
    user_id: str
    name: str | None
    cid: str
    size: int
    number_of_files: int
    mime_type: str
    group_id: str | None
    keyvalues: Keyvalues
    vectorized: bool = False
    network: Network
    created_at: Moment
    expires_at: Moment | None
    is_duplicate: bool


class Limits(V3):
    """max_size: bytes of one upload. max_files: of one folder."""

    max_size: int
    max_files: int


def uploaded(file: File) -> Uploaded:
    return Uploaded(
        id=file.id,
        user_id=file.tenant_id,
        name=file.note.name,
        cid=file.cid,
        size=file.size,
        number_of_files=file.number_of_files,
        mime_type=file.mime_type,
        group_id=file.note.group_id,
        keyvalues=file.note.keyvalues,
        network=file.network,
        created_at=file.created_at,
        expires_at=file.note.expires_at,
        is_duplicate=file.is_duplicate,
    )
