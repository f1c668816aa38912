"""Services of the hub: the catalogue, registries of other servers, and the protocol of ClawHub."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from roost.agents.library.hub.bundled import read_catalogue
from roost.agents.library.hub.clawhub.service import RegistryService
from roost.agents.library.hub.maintenance import HubMaintenance
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.registries import HubRegistries
from roost.agents.library.hub.service import HubService
from roost.agents.library.hub.uploads import HubUploads
from roost.agents.library.skills.service import SkillService
from roost.app.core_services import CoreServices
from roost.app.storage_services import StorageServices
from roost.drivers.skill_registry.clawhub import ClawHubRegistry


@dataclass(frozen=True)
class HubServices:
    hub: HubService
    publisher: HubPublisher
    registries: HubRegistries
    uploads: HubUploads
    registry: RegistryService
    maintenance: HubMaintenance


def build_hub_services(core: CoreServices, storage: StorageServices, library: SkillService) -> HubServices:
    db, content = core.db, storage.content
    hub, uploads = HubService(db, content, library), HubUploads(db)
    publisher = HubPublisher(db, content, library, storage.files.quota.check)
    remote = [ClawHubRegistry(url, partial(core.transports, "hub")) for url in core.settings.hub_registries]
    return HubServices(
        hub=hub,
        publisher=publisher,
        registries=HubRegistries(remote, hub, library),
        uploads=uploads,
        registry=RegistryService(core.addresses.agents_url, hub, publisher, library),
        maintenance=HubMaintenance(
            *(db, hub, publisher, uploads, library),
            read_catalogue() if core.settings.catalogue else (),
        ),
    )


def start_hub_services(hub: HubServices, stack: AsyncExitStack) -> None:
    """Publish the skills that come with Roost, in the background; `stack` ends the task."""
    stack.push_async_callback(hub.maintenance.stop)
    hub.maintenance.start()
