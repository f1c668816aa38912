"""Import: a CAR becomes an agent. The archive is checked in full before one transaction creates everything.

Until then the CAR is an object of the blob store that nothing refers to: a refusal deletes it, and after a crash the
sweep does.
"""

from collections.abc import AsyncIterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.lifecycle.archives.schemas import (
    MANIFEST,
    STATE,
    WORKSPACE,
    AgentManifest,
    ArchiveTooLarge,
    InvalidArchive,
    parse_manifest,
)
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.lifecycle.workflows.launch import LaunchWorkflow
from roost.agents.lifecycle.workflows.model import CreateAgent, LaunchSource
from roost.agents.registry.errors import AgentLimitReached
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository, describe_limit
from roost.agents.workspace.scripts.model import MANIFEST_LIMIT
from roost.agents.workspace.scripts.model import MANIFEST_PATH as SCRIPTS_MANIFEST
from roost.agents.workspace.snapshots.model import Snapshot, SnapshotTrigger, content_scope
from roost.agents.workspace.snapshots.restore import get_member_mode
from roost.core import clock, ids
from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Caller
from roost.storage.content.car_export import copy_tree
from roost.storage.content.car_receiver import MAX_BLOCKS, CarReceiver
from roost.storage.content.errors import ContentNotAFile, ContentNotAFolder, TooDeep, TooManyEntries, TooManyShards
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.service import ContentService
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.files.model import StorageQuotaExceeded
from roost.storage.files.service import StorageQuota
from roost.warden_client.tree_rules import TreeRefused, TreeRules

_MALFORMED = (MalformedContent, ContentNotAFile, ContentNotAFolder, TooDeep, TooManyEntries, TooManyShards)


@dataclass(frozen=True)
class ImportedAgent:
    """A new agent, and what its archive describes.

    missing_skills: CIDs of skills that were not attached. skipped_tasks: names of tasks that the engine refuses.
    """

    agent: Agent
    manifest: AgentManifest
    missing_skills: Sequence[str] = ()
    skipped_tasks: Sequence[str] = ()


@dataclass(frozen=True)
class AgentImporter:
    """Imports archives; `most_bytes` is the disk of an agent, None if it has no limit."""

    _db: Database
    _agents: AgentRepository
    _content: ContentService
    _quota: StorageQuota
    _launch: LaunchWorkflow
    _tasks: TaskImport
    _skills: AgentSkillService
    _most_bytes: int | None

    async def import_agent(
        self, caller: Caller, content: AsyncIterable[bytes], name: str | None = None
    ) -> ImportedAgent:
        """Create the agent of an archive, under another name if that is given, and return it once it runs.

        Raises InvalidArchive, ArchiveTooLarge, StorageQuotaExceeded, BlobStoreFailed, InvalidAgentName, and the errors
        of `LaunchWorkflow.create`.
        """
        plan, limit = await self._agents.get_limit(caller.tenant_id)
        if len(await self._agents.list(caller.tenant_id)) >= limit:  # as the transaction would say, after all bytes
            raise AgentLimitReached(detail=describe_limit(plan, limit))
        async with self._content.receive_car() as car, self._content.receive_car() as state_car:
            try:
                root = await self._receive(car, content, caller.tenant_id)
                return await self._create(caller, car, state_car, root, name)
            except _MALFORMED as problem:
                raise InvalidArchive(f"Invalid archive: {problem.message}") from problem
            finally:
                for pack in (car, state_car):
                    await self._content.discard(pack.pack_id)  # unless an agent holds it

    async def _receive(self, car: CarReceiver, content: AsyncIterable[bytes], tenant_id: str) -> Cid:
        """Receive the CAR within the limits, and return its root."""

        def read_remaining(connection: Connection) -> int | None:
            return self._quota.remaining_bytes(connection, tenants.get_tenant(connection, tenant_id))

        remaining = await self._db.read(read_remaining)
        async for chunk in content:
            size = car.size + len(chunk)
            if remaining is not None and size > remaining:
                raise StorageQuotaExceeded
            self._check_size(size)
            await car.write(chunk)
        contents = await car.finish()
        self._check_size(contents.size)  # the CAR has repeated blocks once
        return contents.cid

    def _check_size(self, size: int) -> None:
        if self._most_bytes is not None and size > self._most_bytes:
            raise ArchiveTooLarge

    async def _create(
        self, caller: Caller, car: CarReceiver, state_car: CarReceiver, root: Cid, name: str | None
    ) -> ImportedAgent:
        """Check what was received, and create the agent; the state gets a pack that no address serves."""
        reader, scope = await self._content.read_car(car), content_scope(caller.tenant_id)
        manifest, entries = await _read_root(reader, scope, root)
        profile, workspace, state = manifest.profile(name), entries[WORKSPACE], entries.get(STATE)
        files, size = await _measure_tree(reader, scope, WORKSPACE, workspace)
        snapshot = _first_snapshot(caller.tenant_id, workspace, car.pack_id, files, size)
        if state is not None:
            files, size = await _measure_tree(reader, scope, STATE, state)
            await copy_tree(reader, scope, state, state_car)
            kept = {"state_cid": str(state.v1()), "state_packs": (state_car.pack_id,)}
            snapshot = replace(snapshot, **kept, state_files=files, state_size=size)
        tasks_operation = ids.new_id()
        missing_skills: list[str] = []

        def fill(connection: Connection, agent: Agent) -> None:
            self._quota.check(connection, tenants.lock_tenant(connection, agent.tenant_id), car.size + state_car.size)
            car.publish_pack(connection, workspace)
            wanted = [skill.cid for skill in manifest.skills]
            missing_skills[:] = self._skills.attach_known(connection, agent.tenant_id, agent.id, wanted)
            if state is None:
                self._tasks.enqueue(connection, agent, manifest.tasks, tasks_operation)
            else:
                state_car.publish_pack(connection)

        request = CreateAgent(profile, manifest.engine, engine_version=manifest.engine_version)
        agent = await self._launch.create(caller, LaunchSource(request, snapshot, fill=fill))
        return ImportedAgent(agent, manifest, missing_skills, await self._tasks.wait(tasks_operation))


async def _read_root(reader: ContentReader, scope: ContentScope, root: Cid) -> tuple[AgentManifest, Mapping[str, Cid]]:
    """Return the manifest, and the entries of the top folder.

    Raises InvalidArchive, MalformedContent, ContentNotAFolder, ContentNotAFile, TooManyShards.
    """
    top = await reader.stat(scope, root)
    entries: dict[str, Cid] = {}
    async with aclosing(reader.list_entries(scope, top)) as links:
        async for link in links:
            if link.name in entries or link.name not in {MANIFEST, WORKSPACE, STATE}:
                raise InvalidArchive(f"Invalid archive: its folder has an unexpected entry {link.name[:100]!r}")
            entries[link.name] = link.cid
    if not {MANIFEST, WORKSPACE} <= entries.keys():
        raise InvalidArchive(f"Invalid archive: its folder needs {MANIFEST} and {WORKSPACE}")
    file = await reader.stat(scope, entries[MANIFEST])
    if (file.size or 0) > MANIFEST_LIMIT:
        raise InvalidArchive(f"Invalid archive: {MANIFEST} is larger than {MANIFEST_LIMIT // 1024**2} MiB")
    async with aclosing(reader.stream_file(scope, file)) as pieces:
        data = b"".join([piece async for piece in pieces])
    return parse_manifest(data), entries


async def _measure_tree(reader: ContentReader, scope: ContentScope, name: str, root: Cid) -> tuple[int, int]:
    """Check a tree, and return number and bytes of its files. Raises InvalidArchive and the errors of `walk_tree`."""
    files = size = 0
    rules = TreeRules(files=(SCRIPTS_MANIFEST,) if name == WORKSPACE else ())
    async with aclosing(walk_tree(reader, scope, root, max_entries=MAX_BLOCKS)) as members:
        async for member in members:
            if member.path == "" and member.kind is not MemberKind.FOLDER:
                raise InvalidArchive(f"Invalid archive: {name} is not a folder")
            if member.path:
                _check_member(member, rules, name)
            if member.kind is not MemberKind.FOLDER:
                files, size = files + 1, size + member.size
    return files, size


def _check_member(member: TreeMember, rules: TreeRules, name: str) -> None:
    try:
        rules.check_entry(member.path, member.kind.value, mode=get_member_mode(member), target_size=member.size)
        rules.check_target(member.path, member.target)
    except TreeRefused as refused:
        raise InvalidArchive(f"Invalid archive: {name}: {refused.message}") from refused


def _first_snapshot(tenant_id: str, root: Cid, pack_id: str, files: int, size: int) -> Snapshot:
    return Snapshot(
        id=ids.new_id(),
        agent_id="",
        tenant_id=tenant_id,
        cid=str(root.v1()),
        trigger=SnapshotTrigger.IMPORT,
        change_summary=f"{files} file{'' if files == 1 else 's'} added",
        files=files,
        size=size,
        packs=(pack_id,),
        created_at=clock.utc_now(),
    )
