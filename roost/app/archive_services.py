"""Services of archives, which use most of an agent's other services."""

from dataclasses import dataclass

from roost.agents.lifecycle.archives.export import AgentExporter
from roost.agents.lifecycle.archives.importer import AgentImporter
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.setup.channels.repository import ChannelRepository
from roost.app.agent_services import AgentServices
from roost.app.core_services import CoreServices
from roost.app.storage_services import StorageServices


@dataclass(frozen=True)
class ArchiveServices:
    exporter: AgentExporter
    importer: AgentImporter


def build_archive_services(core: CoreServices, storage: StorageServices, agents: AgentServices) -> ArchiveServices:
    """Build the services, and register their operation."""
    db, content = core.db, storage.content
    return ArchiveServices(
        AgentExporter(
            db,
            agents.repository,
            agents.runtimes,
            content.reader,
            agents.lifecycle.snapshots,
            agents.secrets,
            agents.private_values,
            ChannelRepository(db, core.sealer, agents.repository),
            agents.tasks,
            agents.lifecycle.agent_skills,
        ),
        AgentImporter(
            db,
            agents.repository,
            content,
            storage.files.quota,
            agents.lifecycle.launch,
            TaskImport(core.operations, agents.repository, agents.tasks),
            agents.lifecycle.agent_skills,
            core.settings.agent_disk,
        ),
    )
