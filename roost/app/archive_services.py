"""Services that make agents of archives and templates, and archives of agents; they use most of the other services."""

from dataclasses import dataclass

from roost.agents.lifecycle.archives.export import AgentExporter
from roost.agents.lifecycle.archives.importer import AgentImporter
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.lifecycle.workflows.launch_sources import LaunchSources, TemplateSources
from roost.app.agent_services import AgentServices
from roost.app.core_services import CoreServices
from roost.app.storage_services import StorageServices
from roost.web.service_registry import ServiceGroup


@dataclass(frozen=True)
class ArchiveServices(ServiceGroup):
    exporter: AgentExporter
    importer: AgentImporter
    launch_sources: LaunchSources


def build_archive_services(core: CoreServices, storage: StorageServices, agents: AgentServices) -> ArchiveServices:
    """Build the services, and register their operation."""
    db, content, runtimes, launch = core.db, storage.content, agents.registry.runtimes, agents.lifecycle.launch
    setup, tasks, skills = agents.setup.stored, agents.setup.tasks, agents.lifecycle.workspace.skills
    templates, hub, quota = agents.library.templates, agents.library.hub.hub, storage.files.files.quota
    task_import = TaskImport(core.operations, runtimes.agents, tasks)
    return ArchiveServices(
        exporter=AgentExporter(
            db,
            runtimes,
            content.reader,
            agents.lifecycle.workspace.snapshots,
            setup.secrets,
            setup.load_private_values,
            setup.channels,
            tasks,
            skills,
        ),
        importer=AgentImporter(
            db, runtimes.agents, content, quota, launch, task_import, skills, core.settings.agent_disk
        ),
        launch_sources=LaunchSources(
            runtimes,
            agents.lifecycle.workspace.snapshots,
            TemplateSources(templates, content, quota, setup.secrets, skills, hub, agents.network.routes),
        ),
    )
