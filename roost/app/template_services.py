"""The service of agent templates, which uses both APIs' services."""

from roost.agents.templates.service import TemplateService
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_remote_repositories
from roost.app.storage_services import StorageServices


def build_template_service(core: CoreServices, storage: StorageServices, drivers: Drivers) -> TemplateService:
    remotes = create_remote_repositories(core.settings, core.dialer.policy, core.transports)
    engines = [engine.id for engine in drivers.engines]
    return TemplateService(core.db, remotes, storage.content, storage.files.quota.check, engines)
