"""Services of agent templates, which use both APIs' services."""

from dataclasses import dataclass
from pathlib import Path

from roost.agents.library.hub.service import HubService
from roost.agents.library.templates.package import PackagedTemplates
from roost.agents.library.templates.service import TemplateService
from roost.agents.lifecycle.workflows.launch_sources import LaunchSources, TemplateSources
from roost.app.agent_services import AgentServices
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_local_repository, create_remote_repositories
from roost.app.storage_services import StorageServices

_CATALOGUE = Path(__file__).parents[1] / "agents/library/templates/catalogue"


@dataclass(frozen=True)
class TemplateServices:
    templates: TemplateService
    packaged: PackagedTemplates


def build_template_services(core: CoreServices, storage: StorageServices, drivers: Drivers) -> TemplateServices:
    db, content, check_quota = core.db, storage.content, storage.files.quota.check
    remotes = create_remote_repositories(core.settings, core.dialer.policy, core.transports)
    engines = [engine.id for engine in drivers.engines]
    package = create_local_repository(_CATALOGUE)
    own = TemplateService(db, package, content, check_quota, engines)
    slugs = sorted(folder.name for folder in _CATALOGUE.iterdir())
    return TemplateServices(
        TemplateService(db, remotes, content, check_quota, engines), PackagedTemplates(db, content, own, package, slugs)
    )


def build_launch_sources(
    storage: StorageServices, templates: TemplateServices, agents: AgentServices, hub: HubService
) -> LaunchSources:
    workspace = agents.lifecycle.workspace
    sources = TemplateSources(
        templates.templates,
        storage.content,
        storage.files.quota,
        agents.setup.secrets,
        workspace.skills,
        hub,
        agents.network.routes,
    )
    return LaunchSources(agents.registry.runtimes, workspace.snapshots, sources)
