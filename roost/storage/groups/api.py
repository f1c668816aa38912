"""Groups over HTTP (contract, Storage API)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.door import GroupsReader, GroupsWriter
from roost.storage.content.model import Network
from roost.storage.groups import wire
from roost.storage.groups.model import PAGE_DEFAULT, PAGE_LIMIT, Filter
from roost.storage.groups.service import Groups
from roost.web.provide import provide
from roost.web.wire import Data, Text

Service = Annotated[Groups, Depends(provide(Groups))]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
_Public = Annotated[bool | None, Query(alias="isPublic")]
GroupId = Annotated[str, Path(alias="id")]
router = APIRouter(prefix="/v3/groups/{network}", tags=["groups"])


@router.post("")
async def create_group(
    caller: GroupsWriter, network: Network, body: wire.CreateGroup, groups: Service
) -> Data[wire.GroupRecord]:
    """Create a group of files on one network."""
    made = await groups.create(caller.tenant_id, network, body.name, is_public=body.is_public)
    return Data(data=wire.record(made))


@router.get("")
async def list_groups(
    caller: GroupsReader,
    network: Network,
    groups: Service,
    name: Text | None = None,
    public: _Public = None,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> Data[wire.GroupList]:
    """The tenant's groups on that network, the newest first; `name` is a part of the name."""
    page, following = await groups.list(caller.tenant_id, network, Filter(name, public), token, limit)
    return Data(data=wire.listed(page, following))


@router.get("/{id}")
async def get_group(
    caller: GroupsReader, network: Network, group_id: GroupId, groups: Service
) -> Data[wire.GroupRecord]:
    """One group."""
    return Data(data=wire.record(await groups.get(caller.tenant_id, network, group_id)))


@router.put("/{id}")
async def update_group(
    caller: GroupsWriter,
    network: Network,
    group_id: GroupId,
    body: wire.UpdateGroup,
    groups: Service,
) -> Data[wire.GroupRecord]:
    """Give a group another name, or open or close it."""
    changed = await groups.update(caller.tenant_id, network, group_id, body.name, is_public=body.is_public)
    return Data(data=wire.record(changed))


@router.delete("/{id}")
async def delete_group(caller: GroupsWriter, network: Network, group_id: GroupId, groups: Service) -> Data[None]:
    """Delete a group. Its files stay."""
    await groups.delete(caller.tenant_id, network, group_id)
    return Data(data=None)
