"""Skills of agents: attach, detach, update.

The rows say what an agent is to have. An operation of the agent brings its workspace to that at once if it runs, and
its next start does otherwise, so that a crash leaves nothing half done.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from roost.agents.library.skills import model, store
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.errors import ConflictingSkills, SkillNotFound, SkillVersionConflict, TooManySkills
from roost.agents.library.skills.model import (
    AttachedSkill,
    AttachedSkillDetail,
    LibrarySkill,
    MissingRequirements,
    SkillVersion,
)
from roost.agents.library.skills.service import find_skill, record_skill_change
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import enqueue_once
from roost.agents.setup.secrets.service import SecretService
from roost.core import clock, log
from roost.core.problem import Problem
from roost.identity import tenants
from roost.net.policy import EgressPolicy
from roost.warden_client.client import WardenClient
from roost.work import ClaimedOperation, OperationWorker

OpenWorkspace = Callable[[Agent], AbstractAsyncContextManager[WardenClient]]
"""Opens the workspace of an agent that runs, and keeps pushes out of it."""
_RETRIES = 10
_WAIT_SECONDS = 30.0
_LIST_SECONDS, _FIND_SECONDS = 5.0, 5.0
_FIND_MISSING = 'for one; do command -v -- "$one" >/dev/null || printf "%s\\n" "$one"; done'
_UP = frozenset({AgentState.RUNNING, AgentState.STARTING})
_log = log.get_logger("skills")


class SkillRequirements:
    """Finds what skills want and their agent lacks: secrets, programs of its container, hosts that it may reach."""

    def __init__(self, secrets: SecretService, runtimes: AgentRuntimes, egress: EgressPolicy) -> None:
        self._secrets = secrets
        self._runtimes = runtimes
        self._egress = egress

    async def find_missing(self, agent_id: str, skills: Sequence[AttachedSkill]) -> Sequence[MissingRequirements]:
        """Return what each skill lacks, in their order. Raises AgentNotFound."""
        present = {one.secret.name for one in await self._secrets.list_attached(agent_id)}
        wanted = {program for one in skills for program in one.version.wants.programs}
        absent = await self._find_absent_programs(agent_id, sorted(wanted))
        return [self._missing_of(one, present, absent) for one in skills]

    def _missing_of(self, skill: AttachedSkill, present: set[str], absent: set[str] | None) -> MissingRequirements:
        wants = skill.version.wants
        return MissingRequirements(
            secrets=[secret.name for secret in wants.secrets if secret.required and secret.name not in present],
            programs=None if absent is None else [program for program in wants.programs if program in absent],
            hosts=[host for host in wants.hosts if not self._egress.admits_host(host.removeprefix("*."))],
        )

    async def _find_absent_programs(self, agent_id: str, programs: Sequence[str]) -> set[str] | None:
        """Return the programs that a shell of the container does not find, None if it cannot be asked."""
        if not programs:
            return set()
        warden = self._runtimes.get_warden(agent_id)
        with suppress(Problem):
            result = await warden.exec(["/bin/sh", "-c", _FIND_MISSING, "sh", *programs], timeout=_FIND_SECONDS)
            if result.exit_code == 0:
                return set(result.stdout.decode(errors="replace").splitlines())
        return None


@dataclass(frozen=True)
class AgentSkillService:
    _queue: OperationWorker
    _runtimes: AgentRuntimes
    _delivery: SkillDelivery
    _requirements: SkillRequirements
    _open_workspace: OpenWorkspace

    def __post_init__(self) -> None:
        self._queue.handle(model.DELIVER, self._handle_delivery, retries=_RETRIES)

    async def list(self, agent_id: str) -> Sequence[AttachedSkill]:
        """List an agent's skills in the order of their attachment. Raises AgentNotFound."""
        await self._runtimes.agents.get(agent_id)
        return await self._queue.db.read(lambda connection: store.list_attached(connection, agent_id))

    async def describe(self, agent_id: str) -> Sequence[AttachedSkillDetail]:
        """List an agent's skills with what each lacks, and whether the engine lists it. Raises AgentNotFound."""
        attached = await self.list(agent_id)
        missing = await self._requirements.find_missing(agent_id, attached)
        loaded = await self._list_loaded(agent_id) if attached else None
        found: list[AttachedSkillDetail] = []
        for one, lacks in zip(attached, missing, strict=True):
            is_loaded = None if loaded is None else one.skill.name in loaded
            fault = await self._delivery.find_fault(one) if is_loaded is False else (loaded or {}).get(one.skill.name)
            found.append(AttachedSkillDetail(one, lacks, is_loaded, fault))
        return found

    async def attach(
        self, tenant_id: str, agent_id: str, references: Sequence[str], *, acknowledged: bool = False
    ) -> tuple[int, Sequence[AttachedSkillDetail]]:
        """Attach skills by CID, id or slug; return how many are new, and all that were named.

        Raises SkillNotFound, TooManySkills, ConflictingSkills, SkillVersionConflict, DangerousSkill, AgentNotFound.
        """

        def add(connection: Connection) -> tuple[Sequence[str], str | None]:
            named = self.attach_in_transaction(connection, tenant_id, agent_id, references, acknowledged=acknowledged)
            return named, self._enqueue(connection, agent_id)

        before = {one.skill.id for one in await self.list(agent_id)}
        named, operation_id = await self._queue.db.write(add)
        await self._wait(operation_id)
        details = [one for one in await self.describe(agent_id) if one.attached.skill.id in named]
        return len(set(named) - before), details

    def attach_in_transaction(
        self,
        connection: Connection,
        tenant_id: str,
        agent_id: str,
        references: Sequence[str],
        *,
        acknowledged: bool = False,
    ) -> Sequence[str]:
        """Attach skills in the caller's transaction, which enqueues a start or a delivery; return their ids."""
        tenants.lock_tenant(connection, tenant_id)
        self._runtimes.agents.lock(connection, agent_id)
        attached = {one.skill.id: one for one in store.list_attached(connection, agent_id)}
        new: dict[str, LibrarySkill] = {}
        named: list[str] = []
        for reference in references:
            found = find_skill(connection, tenant_id, reference)
            named.append(found.skill.id)
            present = attached.get(found.skill.id) or new.setdefault(found.skill.id, found)
            if present.version.id != found.version.id and model.parse_cid_spellings(reference):
                number = present.version.version
                raise SkillVersionConflict(f"Skill version conflict: {number} of {found.skill.name} is attached")
        _check_together([one.skill for one in (*attached.values(), *new.values())])
        for one in new.values():
            model.check_acknowledged(one.skill.name, one.version.verdict, acknowledged=acknowledged)
        versions = {skill_id: one.version.id for skill_id, one in new.items()}
        store.insert_attachments(connection, agent_id, versions, clock.utc_now())
        for one in new.values():
            record_skill_change(connection, one.skill, "attached", agent_id, one.version.version)
        return named

    @staticmethod
    def copy_attachments(connection: Connection, origin_id: str, agent_id: str) -> None:
        """Give a new agent the skills of another one of its tenant."""
        versions = {one.skill.id: one.version.id for one in store.list_attached(connection, origin_id)}
        store.insert_attachments(connection, agent_id, versions, clock.utc_now())

    def attach_known(
        self, connection: Connection, tenant_id: str, agent_id: str, references: Sequence[str]
    ) -> Sequence[str]:
        """Attach those versions that the library has and that need no acknowledgement; return the other references."""
        missing: list[str] = []
        for reference in references:
            try:
                self.attach_in_transaction(connection, tenant_id, agent_id, [reference])
            except Problem:
                missing.append(reference)
        return missing

    async def detach(self, agent_id: str, reference: str) -> None:
        """Detach a skill by its id or CID. Raises SkillNotFound, AgentNotFound."""

        def remove(connection: Connection) -> str | None:
            self._runtimes.agents.lock(connection, agent_id)
            skill = _find_attached(connection, agent_id, reference).skill
            store.delete_attachment(connection, agent_id, skill.id)
            record_skill_change(connection, skill, "detached", agent_id)
            return self._enqueue(connection, agent_id)

        await self._wait(await self._queue.db.write(remove))

    @staticmethod
    def detach_all(connection: Connection, agent_id: str) -> None:
        """Detach all skills of an agent, in the transaction that marks the agent deleted."""
        store.delete_attachments(connection, agent_id)

    async def list_updates(self, agent_id: str) -> Sequence[tuple[AttachedSkill, SkillVersion]]:
        """List the agent's skills that have a newer version, with the newest. Raises AgentNotFound."""
        attached = await self.list(agent_id)
        versions = await self._queue.db.read(
            lambda connection: store.list_versions(connection, [one.skill.id for one in attached])
        )
        newer = [
            (one, model.find_newer(one.version, [each for each in versions if each.skill_id == one.skill.id]))
            for one in attached
        ]
        return [(one, newest) for one, newest in newer if newest is not None]

    async def update(
        self, agent_id: str, reference: str, version: str | None = None, *, acknowledged: bool = False
    ) -> tuple[AttachedSkill, AttachedSkill]:
        """Attach a version (a number or a CID) of the skill, or the newest, in place of the present one.

        Returns the attachment before and after; the same version again changes nothing. Raises SkillNotFound,
        SkillVersionNotFound, SkillVersionConflict for an older version, DangerousSkill, AgentNotFound.
        """

        def change(connection: Connection) -> tuple[AttachedSkill, AttachedSkill, str | None]:
            self._runtimes.agents.lock(connection, agent_id)
            before = _find_attached(connection, agent_id, reference)
            versions = store.list_versions(connection, [before.skill.id])
            newer = model.find_newer(before.version, versions)
            to = newer if version is None else model.find_version(versions, version)
            if to is None or to.id == before.version.id:
                return before, before, None
            if model.version_key(to.version) < model.version_key(before.version.version):
                present = before.version.version
                raise SkillVersionConflict(f"Skill version conflict: {to.version} is older than {present}")
            model.check_acknowledged(before.skill.name, to.verdict, acknowledged=acknowledged)
            store.set_attached_version(connection, agent_id, before.skill.id, to.id)
            record_skill_change(connection, before.skill, "updated", agent_id, to.version)
            after = replace(before, version=to, is_delivered=False)
            return before, after, self._enqueue(connection, agent_id)

        before, after, operation_id = await self._queue.db.write(change)
        await self._wait(operation_id)
        return before, after

    def enqueue_delivery(self, connection: Connection, agent: Agent) -> str:
        """Enqueue a delivery unless one waits; return the id of the operation."""
        return enqueue_once(connection, model.DELIVER, agent)

    async def restore_files(self, agent: Agent) -> None:
        """Enqueue a delivery to an agent that has skills, because something else changed its workspace."""

        def enqueue(connection: Connection) -> None:
            if store.list_attached(connection, agent.id):
                self.enqueue_delivery(connection, agent)

        await self._queue.db.write(enqueue)

    def _enqueue(self, connection: Connection, agent_id: str) -> str | None:
        """Enqueue a delivery; return the id of the operation if the agent runs, so that it is worth to wait for it."""
        agent = self._runtimes.agents.lock(connection, agent_id)
        operation_id = self.enqueue_delivery(connection, agent)
        return operation_id if agent.state in _UP else None

    async def _handle_delivery(self, operation: ClaimedOperation) -> Mapping[str, Any]:
        """Handle `agent.skills`, idempotently; an agent without a container gets its skills at its next start."""
        try:
            agent = await self._runtimes.agents.get_here(operation.subject)
        except AgentNotFound:  # deleted while the operation waited
            return {}
        if not await self._runtimes.has_container(agent.id):
            return {}
        async with self._open_workspace(agent) as warden:
            is_changed = await self._delivery.deliver(agent, warden)
        if is_changed:
            await self._refresh(agent)
        return {}

    async def _wait(self, operation_id: str | None) -> None:
        """Wait a while for a delivery; records show whether it has ended."""
        if operation_id is not None:
            await self._queue.wait(operation_id, _WAIT_SECONDS)

    async def _refresh(self, agent: Agent) -> None:
        """Let the engine look at the folder again; it does so by itself later."""
        engine, context = await self._runtimes.get_context(agent.id)
        if engine.skills is not None:
            try:
                await engine.skills.refresh(context)
            except Problem as problem:
                _log.info("skills.refresh_failed", agent=agent.id, reason=problem.message)

    async def _list_loaded(self, agent_id: str) -> Mapping[str, str | None] | None:
        """Return what the engine lists, with why it does not use one; None if it cannot be asked."""
        try:
            engine, context = await self._runtimes.get_context(agent_id)
            if engine.skills is None:
                return None
            async with asyncio.timeout(_LIST_SECONDS):
                return await engine.skills.list(context)
        except (Problem, TimeoutError):
            return None


def _find_attached(connection: Connection, agent_id: str, reference: str) -> AttachedSkill:
    """Return an attached skill by its id, its slug or the CID of its version. Raises SkillNotFound."""
    spellings = model.parse_cid_spellings(reference)
    for one in store.list_attached(connection, agent_id):
        if reference in {one.skill.id, one.skill.slug} or one.version.cid in spellings:
            return one
    raise SkillNotFound


def _check_together(skills: Sequence[model.Skill]) -> None:
    """Raise TooManySkills or ConflictingSkills unless one agent can have all of these skills."""
    if len(skills) > model.ATTACHED_LIMIT:
        raise TooManySkills
    names = [skill.name for skill in skills]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConflictingSkills(f"{ConflictingSkills.message}: two skills have the name {twice[0]!r}")
