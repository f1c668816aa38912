"""Services of archives, which use most of an agent's other services."""

from dataclasses import dataclass

from roost.agents.lifecycle.archives.export import AgentExporter
from roost.agents.lifecycle.archives.importer import AgentImporter
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.app.agent_services import AgentServices
from roost.app.core_services import CoreServices
from roost.app.storage_services import StorageServices


@dataclass(frozen=True)
class ArchiveServices:
    exporter: AgentExporter
    importer: AgentImporter


def build_archive_services(core: CoreServices, storage: StorageServices, agents: AgentServices) -> ArchiveServices:
    """Build the services, and register their operation."""
    db, content, runtimes, lifecycle = core.db, storage.content, agents.registry.runtimes, agents.lifecycle
    stored, tasks, skills = agents.setup.stored, agents.setup.tasks, lifecycle.workspace.skills
    return ArchiveServices(
        AgentExporter(
            db,
            runtimes,
            content.reader,
            lifecycle.workspace.snapshots,
            stored.secrets,
            stored.load_private_values,
            stored.channels,
            tasks,
            skills,
        ),
        AgentImporter(
            db,
            runtimes.agents,
            content,
            storage.files.quota,
            lifecycle.launch,
            TaskImport(core.operations, runtimes.agents, tasks),
            skills,
            core.settings.agent_disk,
        ),
    )
