"""Publications that arrive by ClawHub's protocol: into the publisher's library, and from there into the hub."""

from collections.abc import Sequence

from roost.agents.library.hub.errors import InvalidHubRequest, OwnerRefused
from roost.agents.library.hub.model import HubListing, HubReference, Publication
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.service import HubService, WantedVersion
from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.model import NewSkill, parse_version
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.skill_file import parse_bundle
from roost.core.problem import NotFound
from roost.core.ttl_cache import TTLCache

_VERDICT_SECONDS, _VERDICTS_KEPT = 5.0, 2_000


class RegistryService:
    def __init__(self, origin: str, hub: HubService, publisher: HubPublisher, library: SkillService) -> None:
        """`origin` is the public address of the registry."""
        self.origin = origin
        self._hub = hub
        self._publisher = publisher
        self._library = library
        self._found = TTLCache[WantedVersion, HubListing | NotFound](_VERDICT_SECONDS, _VERDICTS_KEPT)

    async def find_versions(self, wanted: Sequence[WantedVersion]) -> Sequence[HubListing | NotFound]:
        """Return what `HubService.find_all` returns, remembered for some seconds, because strangers ask for it."""
        kept = {one: found for one in wanted if (found := self._found.get(one)) is not None}
        if missing := [one for one in dict.fromkeys(wanted) if one not in kept]:
            found = await self._hub.find_all(missing)
            for one, listing in zip(missing, found, strict=True):
                self._found.put(one, listing)
            kept |= dict(zip(missing, found, strict=True))
        return [kept[one] for one in wanted]

    async def publish(
        self, tenant_id: str, slug: str, owner: str | None, bundle: Bundle, publication: Publication
    ) -> HubListing:
        """Register files in the library, and publish them.

        Raises OwnerRefused, InvalidHubRequest, InvalidSkill, SkillVersionConflict and the errors of publications.
        """
        await self._check_owner(tenant_id, owner)
        name = parse_bundle(bundle).name
        if name != slug:
            raise InvalidHubRequest(f"The slug must be the name in SKILL.md, {name!r}, got {slug!r}")
        version = parse_version(publication.version) if publication.version else None
        await self._library.register(tenant_id, bundle, NewSkill(version=version, keeps_version=True))
        return await self._publisher.publish_bundle(tenant_id, bundle, publication)

    async def withdraw(self, tenant_id: str, slug: str, owner: str | None) -> None:
        """Withdraw a skill of the tenant. Raises OwnerRefused, HubSkillNotFound."""
        handle = await self._check_owner(tenant_id, owner)
        found = await self._hub.get(HubReference(slug, handle))
        await self._publisher.unpublish(tenant_id, found.skill.id)

    async def _check_owner(self, tenant_id: str, owner: str | None) -> str:
        """Return the tenant's own handle. Raises OwnerRefused if the request names another one."""
        own = (await self._publisher.get_owner(tenant_id)).handle
        if owner and owner.removeprefix("@").lower() != own:
            raise OwnerRefused(f"You publish as @{own}, not as @{owner.removeprefix('@')[:40]}")
        return own
