"""Groups over HTTP (contract, Storage API), also as older clients have them: under `/v3/files/groups` for private
files, under `/groups` in shapes of their own for public ones.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import PlainTextResponse

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
router = APIRouter(tags=["groups"])


@router.post("/v3/groups/{network}")
@router.post("/v3/files/groups")
async def create_group(
    caller: GroupsWriter, body: wire.CreateGroup, groups: Service, network: Network = Network.PRIVATE
) -> Data[wire.GroupRecord]:
    """Create a group of files on one network."""
    made = await groups.create(caller.tenant_id, network, body.name, is_public=body.is_public)
    return Data(data=wire.record(made))


@router.get("/v3/groups/{network}")
@router.get("/v3/files/groups")
async def list_groups(
    caller: GroupsReader,
    groups: Service,
    network: Network = Network.PRIVATE,
    name: Text | None = None,
    public: _Public = None,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> Data[wire.GroupList]:
    """The tenant's groups on that network, the newest first; `name` is a part of the name."""
    page, following = await groups.list(caller.tenant_id, network, Filter(name, public), token, limit)
    return Data(data=wire.listed(page, following))


@router.get("/v3/groups/{network}/{id}")
@router.get("/v3/files/groups/{id}")
async def get_group(
    caller: GroupsReader, group_id: GroupId, groups: Service, network: Network = Network.PRIVATE
) -> Data[wire.GroupRecord]:
    """One group."""
    return Data(data=wire.record(await groups.get(caller.tenant_id, network, group_id)))


@router.put("/v3/groups/{network}/{id}")
@router.put("/v3/files/groups/{id}")
async def update_group(
    caller: GroupsWriter,
    group_id: GroupId,
    body: wire.UpdateGroup,
    groups: Service,
    network: Network = Network.PRIVATE,
) -> Data[wire.GroupRecord]:
    """Give a group another name, or open or close it."""
    changed = await groups.update(caller.tenant_id, network, group_id, body.name, is_public=body.is_public)
    return Data(data=wire.record(changed))


@router.delete("/v3/groups/{network}/{id}")
@router.delete("/v3/files/groups/{id}")
async def delete_group(
    caller: GroupsWriter, group_id: GroupId, groups: Service, network: Network = Network.PRIVATE
) -> Data[None]:
    """Delete a group. Its files stay."""
    await groups.delete(caller.tenant_id, network, group_id)
    return Data(data=None)


@router.post("/groups")
async def create_public_group(caller: GroupsWriter, body: wire.Named, groups: Service) -> wire.OldGroupRecord:
    """Create a group of public files."""
    return wire.old_record(await groups.create(caller.tenant_id, Network.PUBLIC, body.name, is_public=False))


@router.get("/groups")
async def list_public_groups(
    caller: GroupsReader, chosen: Annotated[wire.Chosen, Query()], groups: Service
) -> Sequence[wire.OldGroupRecord]:
    """Groups of public files, the newest first; `nameContains` is a part of the name."""
    wanted = Filter(chosen.name_contains)
    found = await groups.slice(caller.tenant_id, Network.PUBLIC, wanted, chosen.limit, chosen.offset)
    return [wire.old_record(group) for group in found]


@router.get("/groups/{id}")
async def get_public_group(caller: GroupsReader, group_id: GroupId, groups: Service) -> wire.OldGroupRecord:
    """One group of public files."""
    return wire.old_record(await groups.get(caller.tenant_id, Network.PUBLIC, group_id))


@router.put("/groups/{id}")
async def rename_public_group(
    caller: GroupsWriter, group_id: GroupId, body: wire.Named, groups: Service
) -> wire.OldGroupRecord:
    """Give a group of public files another name."""
    changed = await groups.update(caller.tenant_id, Network.PUBLIC, group_id, body.name, is_public=None)
    return wire.old_record(changed)


@router.delete("/groups/{id}", response_class=PlainTextResponse)
async def delete_public_group(caller: GroupsWriter, group_id: GroupId, groups: Service) -> str:
    """Delete a group of public files. They stay."""
    await groups.delete(caller.tenant_id, Network.PUBLIC, group_id)
    return "OK"
