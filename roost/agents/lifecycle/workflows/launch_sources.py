"""Sources of a launch: snapshots of other agents, and templates, whose manifests complete the request."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.agents.library.hub.service import HubService
from roost.agents.library.instances.model import TemplateInstance, is_required_channel, skill_reference
from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.library.templates.manifest import TemplateManifest
from roost.agents.library.templates.model import Template, TemplateNotFound, TemplateVersion, template_scope
from roost.agents.library.templates.service import TemplateService
from roost.agents.lifecycle.workflows.launch import select_engine
from roost.agents.lifecycle.workflows.model import CreateAgent, LaunchSource
from roost.agents.network.routes.model import PathRoute, parse_prefix
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.setup.channels.model import ChannelPlanTooSmall
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.scripts.model import MANIFEST_PATH, encode_manifest
from roost.agents.workspace.snapshots.model import Snapshot, SnapshotTrigger
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.core import clock, ids, log
from roost.core.problem import Problem
from roost.identity import tenants
from roost.identity.caller import Caller, Plan
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.directory import DirectoryEntry
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from roost.storage.files.service import StorageQuota

_log = log.get_logger("templates")


@dataclass(frozen=True)
class TemplateSources:
    """Templates as sources: the manifest gives defaults, the template's version gives the first workspace."""

    _templates: TemplateService
    _content: ContentService
    _quota: StorageQuota
    _secrets: SecretService
    _skills: AgentSkillService
    _hub: HubService
    _routes: RouteService

    @asynccontextmanager
    async def open(self, caller: Caller, plan: Plan, request: CreateAgent, name: str) -> AsyncGenerator[LaunchSource]:
        """Yield the source of a template's id or slug.

        Raises TemplateNotFound, ChannelPlanTooSmall and BlobStoreFailed; `fill` raises InvalidRoutes and
        StorageQuotaExceeded.
        """
        try:
            template, version = await self._templates.get(caller.tenant_id, name)
        except TemplateNotFound:
            template, version = await self._templates.get_by_slug(caller.tenant_id, name)
        manifest = version.parse_manifest()
        wanted = manifest.channels.values()
        if plan is Plan.FREE and any(is_required_channel(channel, manifest.secrets) for channel in wanted):
            raise ChannelPlanTooSmall  # the agent would wait for the channel in vain
        request = apply_manifest(request, template, manifest)
        if request.attach_secrets:
            request = replace(request, secret_ids=[*request.secret_ids, *await self._find_secrets(caller, manifest)])
        skills = await self._install_skills(caller.tenant_id, manifest)
        async with self._content.receive(UNIXFS_V1_2025) as receiver:
            try:
                snapshot = await self._store_workspace(caller.tenant_id, template, version, receiver)

                def fill(connection: Connection, agent: Agent) -> None:
                    tenant = tenants.lock_tenant(connection, agent.tenant_id)
                    self._quota.check(connection, tenant, version.size + receiver.size)
                    receiver.publish_pack(connection)
                    TemplateInstanceService.add(connection, _instance(agent, template, version))
                    self._skills.attach_known(connection, agent.tenant_id, agent.id, skills)
                    routes = [PathRoute(parse_prefix(one.path), one.port, one.protected) for one in manifest.routes]
                    self._routes.replace_in_transaction(connection, agent, routes)

                yield LaunchSource(request, snapshot, fill=fill)
            finally:
                await self._content.discard(receiver.pack_id)  # unless the agent holds it

    async def _find_secrets(self, caller: Caller, manifest: TemplateManifest) -> Sequence[str]:
        """Return the ids of the tenant's secrets that have the names that the template asks for."""
        names = {secret.name for secret in manifest.secrets}
        found, _ = await self._secrets.list(caller.tenant_id)
        return [one.secret.id for one in found if one.secret.name in names]

    async def _install_skills(self, tenant_id: str, manifest: TemplateManifest) -> Sequence[str]:
        """Put the skills that the library lacks into it from the hub, and return the CIDs of those that it has."""
        found: list[str] = []
        for reference in map(skill_reference, manifest.skills):
            try:
                found.append((await self._hub.install_missing(tenant_id, reference)).version.cid)
            except Problem as problem:  # the agent is made without it, and its detail says that it is missing
                _log.info("template_skill.missing", skill=reference, reason=problem.message)
        return found

    async def _store_workspace(
        self, tenant_id: str, template: Template, version: TemplateVersion, receiver: ContentReceiver
    ) -> Snapshot:
        """Store the template's top folder with its manifest, which scripts are read from, and return the snapshot."""
        scope, reader = template_scope(template.tenant_id), self._content.reader
        manifest = encode_manifest(version.manifest)
        top = await reader.stat(scope, Cid.parse(version.snapshot_cid))
        async with aclosing(reader.list_entries(scope, top)) as links:
            entries = [
                DirectoryEntry(link.name, link.cid, link.size, link.size)
                async for link in links
                if link.name != MANIFEST_PATH
            ]
        tree = receiver.add_small_file(manifest)
        root = receiver.add_folder([*entries, DirectoryEntry(MANIFEST_PATH, tree.cid, tree.size, tree.tsize)])
        await receiver.commit_blob()
        return Snapshot(
            id=ids.new_id(),
            agent_id="",
            tenant_id=tenant_id,
            cid=str(root.cid.v1()),
            trigger=SnapshotTrigger.TEMPLATE,
            change_summary=f"Template {template.slug}, version {version.version}",
            files=version.files + 1,
            size=version.size + len(manifest),
            packs=(version.pack_id, receiver.pack_id),
            created_at=clock.utc_now(),
        )


@dataclass(frozen=True)
class LaunchSources:
    """Finds the source that a request names."""

    _runtimes: AgentRuntimes
    _snapshots: SnapshotService
    _templates: TemplateSources

    @asynccontextmanager
    async def open(self, caller: Caller, request: CreateAgent) -> AsyncGenerator[LaunchSource]:
        """Yield the source of a new agent; it can be launched within the block.

        Raises the errors of `TemplateSources.open`, `SnapshotService.find_for_tenant` and `select_engine`.
        """
        if request.template is not None:
            plan, _ = await self._runtimes.agents.get_limit(caller.tenant_id)
            async with self._templates.open(caller, plan, request, request.template) as source:
                yield source
        elif request.snapshot_cid is not None:
            yield await self._find_fork(caller, request, request.snapshot_cid)
        else:
            yield LaunchSource(request)

    async def _find_fork(self, caller: Caller, request: CreateAgent, cid: str) -> LaunchSource:
        """Find a snapshot: without its state for another engine, otherwise at the version that can read its state."""
        engine = select_engine(self._runtimes, request.engine)
        snapshot = await self._snapshots.find_for_tenant(caller.tenant_id, cid)
        origin = await self._runtimes.agents.get(snapshot.agent_id)
        if origin.engine != engine.id:
            snapshot = replace(snapshot, state_cid=None, state_files=0, state_size=0, state_packs=())
        elif origin.engine_version in engine.installed():
            request = replace(request, engine_version=origin.engine_version)
        return LaunchSource(request, snapshot, origin.id)


def apply_manifest(request: CreateAgent, template: Template, manifest: TemplateManifest) -> CreateAgent:
    """Return the request with what it leaves to the template."""
    own, default = request.profile, manifest.agent
    profile = AgentProfile(
        own.name or template.name,
        default.description if own.description is None else own.description,
        default.vibe if own.vibe is None else own.vibe,
        default.emoji if own.emoji is None else own.emoji,
        own.model,
    )
    return replace(request, profile=profile, engine=request.engine or manifest.engine)


def _instance(agent: Agent, template: Template, version: TemplateVersion) -> TemplateInstance:
    return TemplateInstance(
        agent_id=agent.id,
        template_id=template.id,
        slug=template.slug,
        name=template.name,
        version=version.version,
        commit_sha=version.commit_sha,
        manifest=version.manifest,
        is_waiting=True,
        attempt=None,
        created_at=agent.created_at,
    )
