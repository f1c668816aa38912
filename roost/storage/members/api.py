"""Files into groups and out of them. A file is in one group at most."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.identity.door import GroupsWriter
from roost.storage.content.model import Network
from roost.storage.files.service import Files
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Files, Depends(provide(Files))]
GroupId = Annotated[str, Path(alias="id")]
router = APIRouter(prefix="/v3/groups/{network}/{id}/ids/{file_id}", tags=["groups"])


@router.put("")
async def add_to_group(
    caller: GroupsWriter, network: Network, group_id: GroupId, file_id: str, files: Service
) -> Data[None]:
    """Put a file into a group."""
    await files.regroup(caller.tenant_id, network, file_id, group_id, member=True)
    return Data(data=None)


@router.delete("")
async def remove_from_group(
    caller: GroupsWriter,
    network: Network,
    group_id: GroupId,
    file_id: str,
    files: Service,
) -> Data[None]:
    """Take a file out of a group. The file stays."""
    await files.regroup(caller.tenant_id, network, file_id, group_id, member=False)
    return Data(data=None)
