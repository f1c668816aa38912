"""Which groups and files a caller may search: a key all of its tenant, an agent those that were granted to it."""

from roost.core.db import Connection
from roost.identity.caller import Caller
from roost.storage.files.groups.model import Group, GroupNotFound
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import File, FileNotFound
from roost.storage.files.service import find_file
from roost.storage.vectors import store


def get_searchable_group(connection: Connection, caller: Caller, group_id: str) -> Group:
    """Return a group, on either network. Raises GroupNotFound, also without a grant."""
    group = GroupService.find_by_id(connection, caller.tenant_id, group_id)
    if group is None or not _is_granted(connection, caller, group_id):
        raise GroupNotFound
    return group


def get_searchable_file(connection: Connection, caller: Caller, file_id: str) -> File:
    """Return a file, on either network. Raises FileNotFound, also for an agent without a grant of the file's group."""
    file = find_file(connection, caller.tenant_id, file_id)
    if file is None or not _is_granted(connection, caller, file.metadata.group_id):
        raise FileNotFound
    return file


def _is_granted(connection: Connection, caller: Caller, group_id: str | None) -> bool:
    if caller.agent_id is None:
        return True
    return group_id is not None and store.find_grant(connection, group_id, caller.agent_id) is not None
