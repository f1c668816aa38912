"""Services of the library of agents: skills, templates, and the hub with its registries."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roost.agents.library.hub.clawhub.service import HubUploads, RegistryService
from roost.agents.library.hub.maintenance import HubMaintenance, read_catalogue
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.registries import HubRegistries
from roost.agents.library.hub.service import HubService
from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.attachments import SkillRequirements
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.service import SkillService
from roost.agents.library.templates.package import PackagedTemplates
from roost.agents.library.templates.service import TemplateService
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.models.gateway.service import ModelGateway
from roost.app.core_services import CoreServices
from roost.app.drivers import create_local_repository, create_remote_repositories
from roost.app.lifecycle_services import LibraryServices, RegistryServices, StoredSetup
from roost.app.storage_services import StorageServices
from roost.drivers.skill_registry.clawhub import ClawHubRegistry
from roost.net.policy import EgressPolicy
from roost.web.service_registry import ServiceGroup

_TEMPLATES = Path(__file__).parents[1] / "agents/library/templates/catalogue"


@dataclass(frozen=True)
class HubServices(ServiceGroup):
    hub: HubService
    publisher: HubPublisher
    registries: HubRegistries
    uploads: HubUploads
    registry: RegistryService
    maintenance: HubMaintenance


@dataclass(frozen=True)
class SharedLibrary(ServiceGroup):
    """What agents share: `agents` has the services that start agents with it."""

    agents: LibraryServices
    templates: TemplateService
    packaged_templates: PackagedTemplates
    hub: HubServices


def build_templates(
    core: CoreServices, storage: StorageServices, engines: Sequence[str]
) -> tuple[TemplateService, PackagedTemplates]:
    """Build the service of repositories' templates, and the templates that come with Roost."""
    db, content, quota = core.db, storage.content, storage.files.files.quota
    remotes = create_remote_repositories(core.settings, core.network.dialer.policy, core.network.transports)
    package = create_local_repository(_TEMPLATES)
    packaged = TemplateService(db, package, content, quota, engines)
    slugs = sorted(folder.name for folder in _TEMPLATES.iterdir())
    templates = TemplateService(db, remotes, content, quota, engines)
    return templates, PackagedTemplates(db, content, packaged, package, slugs)


def build_library(
    registry: RegistryServices,
    storage: StorageServices,
    stored: StoredSetup,
    templates: TemplateService,
    models: ModelGateway,
    policy: EgressPolicy,
) -> LibraryServices:
    """Build the services of skills and of agents that were made from a template. `policy`: that of agents."""
    db, runtimes = registry.operations.db, registry.runtimes
    skills = SkillService(db, storage.content, storage.files.files.quota)

    async def list_models(agent_id: str) -> Collection[str] | None:
        """Return the ids of the models that an agent is offered, None if a provider did not list its own."""
        offer = await models.get_offer(agent_id)
        return offer.ids if offer.complete else None

    return LibraryServices(
        skills=skills,
        delivery=SkillDelivery(db, skills),
        requirements=SkillRequirements(stored.secrets, runtimes, policy),
        instances=TemplateInstanceService(
            db,
            runtimes,
            stored.secrets,
            stored.channels,
            stored.channel_validator,
            list_models,
            TaskImport.enqueue,
            templates.find_latest,
        ),
    )


def build_hub(core: CoreServices, storage: StorageServices, skills: SkillService) -> HubServices:
    db, content = core.db, storage.content
    hub, uploads = HubService(db, content, skills), HubUploads(db)
    publisher = HubPublisher(db, content, skills, storage.files.files.quota)
    remote = [ClawHubRegistry(url, partial(core.network.transports, "hub")) for url in core.settings.hub_registries]
    catalogue = read_catalogue() if core.settings.catalogue else ()
    return HubServices(
        hub=hub,
        publisher=publisher,
        registries=HubRegistries(remote, hub, skills),
        uploads=uploads,
        registry=RegistryService(core.addresses.agents_url, hub, publisher, skills),
        maintenance=HubMaintenance(db, hub, publisher, uploads, skills, catalogue),
    )
