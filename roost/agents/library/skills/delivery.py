"""Make the folder `skills` of a workspace equal to the attached skills.

Each delivered folder has a marker that names its agent and the files that Roost wrote, so that no other state is
needed: whatever a reset, a fork, a push or the agent did to the workspace, the next delivery mends it. Files of a skill
that the agent changed or deleted are restored; files that it added stay, also when the skill is detached.
All changes of a delivery take place together, or, if it is interrupted, by its repetition.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from roost.agents.library.skills import store
from roost.agents.library.skills.bundle import Bundle, BundleFile
from roost.agents.library.skills.model import FOLDER, MARKER, AttachedSkill
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.skill_file import CONDITION, parse_bundle
from roost.agents.library.skills.stored_bundle import FILE_MODE, PROGRAM_MODE
from roost.agents.registry.model import Agent
from roost.core import clock, log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.warden_client.changes import PutFile, RemovePath, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning, PathRefused, WardenFileNotFound, WardenNotAFile
from roost.warden_client.tree import STAGING_NAME, FileReading

_MARKER_LIMIT = 256 * 1024
_LISTED_WITHIN = timedelta(minutes=1)  # Hermes keeps what it found for half of it
_EXECUTABLE = 0o111
_log = log.get_logger("skills")


@dataclass(frozen=True)
class SkillMarker:
    """Content of a marker: the agent for which a folder was written, its CID, and its files."""

    agent_id: str
    cid: str
    files: Sequence[str]

    def encode(self) -> bytes:
        written = {"agent": self.agent_id, "cid": self.cid, "files": list(self.files)}
        return json.dumps(written, indent=1).encode()


class SkillDelivery:
    def __init__(self, db: Database, library: SkillService) -> None:
        self._db = db
        self._library = library

    async def deliver(self, agent: Agent, warden: WardenClient) -> bool:
        """Write and remove what differs; return whether anything did. Idempotent.

        Raises the errors of `SkillService.read_version` and `WardenTree.apply`.
        """
        attached = await self._db.read(lambda connection: store.list_attached(connection, agent.id))
        markers = await _read_markers(warden)
        changes: list[TreeChange] = []
        for one in attached:
            bundle = await self._library.read_version(one.version)
            changes += await _put_skill(warden, agent.id, one, bundle, markers.get(one.skill.name))
        wanted = {one.skill.name for one in attached}
        for name, marker in markers.items():
            if name not in wanted and marker.agent_id == agent.id:
                changes += await _remove_skill(warden, name, marker)
        if changes or await _is_interrupted(warden):
            await warden.tree.apply(_each(changes))
            _log.info("skills.delivered", agent=agent.id, changes=len(changes))
        delivered = {one.skill.id: one.version.id for one in attached if not one.is_delivered}
        if delivered:
            await self._db.write(lambda connection: store.set_delivered(connection, agent.id, delivered))
        return bool(changes)

    async def find_fault(self, attached: AttachedSkill) -> str | None:
        """Return why an engine that has had time does not list a delivered skill; None before that."""
        if not attached.is_delivered:
            return None
        try:  # its version can be older than a rule of the check
            file = parse_bundle(await self._library.read_version(attached.version))
        except Problem as problem:
            return problem.detail or problem.message
        if conditions := [one for one in file.warnings if CONDITION in one]:
            return "; ".join(conditions)
        is_late = clock.utc_now() - attached.attached_at > _LISTED_WITHIN
        return "its SKILL.md is well-formed; the engine's log or its configuration says more" if is_late else None

    async def try_deliver(self, agent: Agent, warden: WardenClient) -> None:
        """Deliver before a start, which a failure does not prevent, unless the container is gone."""
        try:
            await self.deliver(agent, warden)
        except ContainerNotRunning:
            raise
        except Problem as problem:
            _log.warning("skills.delivery_failed", agent=agent.id, reason=problem.detail or problem.message)


def parse_marker(content: bytes) -> SkillMarker | None:
    """Parse a marker, which the agent can have written; None if it is malformed."""
    try:
        found: Any = json.loads(content)
        marker = SkillMarker(found["agent"], found["cid"], found["files"])
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    texts: list[Any] = [marker.agent_id, marker.cid, *marker.files] if isinstance(marker.files, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        return None
    is_safe = all({"", ".", ".."}.isdisjoint(path.split("/")) and "\0" not in path for path in marker.files)
    return marker if is_safe else None


async def _is_interrupted(warden: WardenClient) -> bool:
    """Return whether a crash interrupted a change after its last path; the next one, even of nothing, ends it."""
    try:
        await warden.list(STAGING_NAME)
    except WardenFileNotFound:
        return False
    except (WardenNotAFile, PathRefused):  # the agent made it
        return True
    return True


async def _read_markers(warden: WardenClient) -> Mapping[str, SkillMarker]:
    """Return the markers of the folder by the names of the skills."""
    try:
        entries = await warden.list(FOLDER)
    except (WardenFileNotFound, WardenNotAFile, PathRefused):
        return {}
    names = [entry.name for entry in entries if entry.kind == "folder"]
    contents = await _read_all(warden, [f"{FOLDER}/{name}/{MARKER}" for name in names], _MARKER_LIMIT)
    found = {name: contents.get(f"{FOLDER}/{name}/{MARKER}") for name in names}
    markers = {name: parse_marker(file.content) for name, file in found.items() if file is not None}
    return {name: marker for name, marker in markers.items() if marker is not None}


async def _put_skill(
    warden: WardenClient, agent_id: str, attached: AttachedSkill, bundle: Bundle, marker: SkillMarker | None
) -> Sequence[TreeChange]:
    """Return the changes that make a folder hold the bundle: what differs, and the marker."""
    folder = f"{FOLDER}/{attached.skill.name}"
    wanted = {f"{folder}/{path}": file for path, file in bundle.files.items() if path != MARKER}
    own = SkillMarker(agent_id, attached.version.cid, sorted(path for path in bundle.files if path != MARKER))
    present = await _read_all(warden, wanted, max((len(file.content) for file in wanted.values()), default=0))
    changes: list[TreeChange] = []
    if marker is not None and marker.agent_id == agent_id:
        changes += [RemovePath(f"{folder}/{path}") for path in marker.files if path not in bundle.files]
    for path, file in wanted.items():
        if present.get(path) != file:
            mode = PROGRAM_MODE if file.is_executable else FILE_MODE
            changes.append(PutFile(path, mode, len(file.content), file.content))
    if changes or marker != own:
        content = own.encode()
        changes.append(PutFile(f"{folder}/{MARKER}", FILE_MODE, len(content), content))
    return changes


async def _remove_skill(warden: WardenClient, name: str, marker: SkillMarker) -> Sequence[TreeChange]:
    """Return the changes that remove what was delivered: the folder, unless the agent added files to it."""
    folder = f"{FOLDER}/{name}"
    entries = await warden.files.tree(folder, limit=10_000)
    delivered = {f"{folder}/{path}" for path in (*marker.files, MARKER)}
    if all(entry.kind == "folder" or entry.name in delivered for entry in entries):
        return [RemovePath(folder)]
    return [RemovePath(path) for path in sorted(delivered)]


async def _read_all(warden: WardenClient, paths: Iterable[str], limit: int) -> Mapping[str, BundleFile]:
    """Read those files of at most `limit` bytes that exist."""
    found: dict[str, BundleFile] = {}
    async with aclosing(warden.tree.read_files(paths)) as batches:
        async for batch in batches:
            for file in batch:
                if not file.error and file.size <= limit:
                    found[file.path] = BundleFile(await _read_content(file), file.mode & _EXECUTABLE != 0)
    return found


async def _read_content(file: FileReading) -> bytes:
    if isinstance(file.content, memoryview):
        return bytes(file.content)
    return b"".join([piece async for piece in file.content])


async def _each(changes: Iterable[TreeChange]) -> AsyncGenerator[TreeChange]:
    for change in changes:
        yield change
