"""Export: a snapshot of an agent and its manifest as one CAR, whose root is a folder around both (decision 0026)."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.library.templates.manifest import ManifestAgent, ManifestTask
from roost.agents.lifecycle.archives.schemas import (
    MANIFEST,
    STATE,
    WORKSPACE,
    AgentManifest,
    ArchiveHoldsSecret,
    ManifestChannel,
    ManifestSecret,
    ManifestSkill,
)
from roost.agents.registry.agent_runtimes import AgentRuntimes, LoadValues
from roost.agents.registry.errors import AgentNotRunning
from roost.agents.registry.model import Agent, AgentState
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.secrets.service import SecretService
from roost.agents.setup.tasks.service import TaskService
from roost.agents.workspace.snapshots.model import Snapshot, content_scope, state_scope
from roost.agents.workspace.snapshots.secret_search import SecretSearch
from roost.agents.workspace.snapshots.service import SnapshotService, find_snapshot
from roost.core.db import Database
from roost.drivers.engine.abilities.tasks import OneTimeSchedule, Task
from roost.storage.content.car_export import export_frames
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.content.unixfs import car
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import build_file
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025


@dataclass(frozen=True)
class AgentArchive:
    """An archive that can be sent: `head` are the header and the blocks that are not stored; the trees follow."""

    filename: str
    head: bytes
    trees: Sequence[tuple[ContentScope, Cid]]
    reader: ContentReader

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of the CAR. Raises the errors of `export_frames`."""
        yield self.head
        for scope, root in self.trees:
            async with aclosing(export_frames(self.reader, scope, root)) as frames:
                async for frame in frames:
                    yield frame


@dataclass(frozen=True)
class AgentExporter:
    _db: Database
    _runtimes: AgentRuntimes
    _reader: ContentReader
    _snapshots: SnapshotService
    _secrets: SecretService
    _load_secrets: LoadValues
    _channels: ChannelRepository
    _tasks: TaskService
    _skills: AgentSkillService

    async def open_archive(self, agent_id: str, cid: str | None = None) -> AgentArchive:
        """Take a snapshot, or find an older one, and return its archive.

        Raises ArchiveHoldsSecret, AgentNotRunning, TaskListFailed, InvalidSnapshotCid, SnapshotNotFound, and the errors
        of `SnapshotService.sync`.
        """
        agent = await self._runtimes.agents.get(agent_id)
        if cid is None:
            _, snapshot = await self._snapshots.sync(agent_id)
        else:
            snapshot = await find_snapshot(self._db, agent_id, cid)
        manifest = (await self._describe(agent, snapshot)).encode()
        trees = {WORKSPACE: (content_scope(agent.tenant_id), Cid.parse(snapshot.cid))}
        if snapshot.state_cid is not None:
            trees[STATE] = state_scope(agent.tenant_id), Cid.parse(snapshot.state_cid)
        await self._search(agent_id, manifest, trees.values() if cid else ())
        described = build_file(UNIXFS_V1_2025, manifest)
        entries = [DirectoryEntry(MANIFEST, described.cid, described.size, described.tsize)]
        sizes = {WORKSPACE: snapshot.size, STATE: snapshot.state_size}
        for name, (scope, root) in trees.items():
            found = await self._reader.stat(scope, root)
            below = 0 if found.node is None else sum(link.size for link in found.node.links)
            entries.append(DirectoryEntry(name, root, sizes[name], found.block.row.length + below))
        folder = build_folder(UNIXFS_V1_2025, entries)
        blocks = [(folder.cid, folder.nodes[-1].data), (described.cid, manifest)]
        frames = b"".join(car.encode_frame(name, len(block)) + block for name, block in blocks)
        filename = f"{agent.profile.name.replace('/', '-')}.car"
        return AgentArchive(filename, car.encode_header([folder.cid]) + frames, list(trees.values()), self._reader)

    async def _describe(self, agent: Agent, snapshot: Snapshot) -> AgentManifest:
        profile = agent.profile
        secrets = await self._secrets.list_attached(agent.id)
        channels = await self._channels.get_channels(agent.id)
        skills = await self._skills.list(agent.id)
        tasks = () if snapshot.state_cid else await self._list_tasks(agent)  # a state has them
        return AgentManifest.model_validate(
            {
                "engine": agent.engine,
                "engine_version": agent.engine_version,
                "agent": ManifestAgent(**vars(profile)),
                "model": profile.model,
                "secrets": [ManifestSecret(name=one.secret.name, type=one.secret.kind) for one in secrets],
                "skills": [ManifestSkill(name=one.skill.name, cid=one.version.cid) for one in skills],
                "tasks": [ManifestTask.from_task(task) for task in tasks if _can_run(task)],
                "channels": {name: ManifestChannel.from_channel(channel) for name, channel in channels.items()},
            }
        )

    async def _list_tasks(self, agent: Agent) -> Sequence[Task]:
        """List the tasks, which only the running engine knows."""
        if self._runtimes.get_engine(agent.engine).tasks is None:
            return ()
        if agent.state is not AgentState.RUNNING:
            raise AgentNotRunning
        return await self._tasks.list(agent.id)

    async def _search(self, agent_id: str, manifest: bytes, trees: Iterable[tuple[ContentScope, Cid]]) -> None:
        """Search the manifest and older trees for the present secrets, which a new snapshot leaves out.

        Raises ArchiveHoldsSecret.
        """
        values = {name: value.reveal().encode() for name, value in (await self._load_secrets(agent_id)).items()}
        search = SecretSearch(values)
        if secret := search.feed(manifest):
            raise ArchiveHoldsSecret(f"The agent's description or a task holds the value of the secret {secret}")
        for scope, root in trees if values else ():
            async with aclosing(walk_tree(self._reader, scope, root)) as members:
                async for member in members:
                    if member.kind is MemberKind.FILE and (secret := await self._search_file(search, scope, member)):
                        raise ArchiveHoldsSecret(f"{member.path} holds the value of the secret {secret}")

    async def _search_file(self, search: SecretSearch, scope: ContentScope, member: TreeMember) -> str | None:
        search.reset()
        file = await self._reader.stat(scope, member.cid)
        async with aclosing(self._reader.stream_file(scope, file)) as pieces:
            async for piece in pieces:
                if secret := search.feed(piece):
                    return secret
        return None


def _can_run(task: Task) -> bool:
    """Return whether a task can be described, and is not a single one that has run."""
    is_over = isinstance(task.schedule, OneTimeSchedule) and task.next_run_at is None
    return task.schedule is not None and task.payload is not None and not is_over
