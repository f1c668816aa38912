"""Skills of registries on other servers: searched beside the hub, and installed through our own extractor and check.

Their ids are `REGISTRY~OWNER~SLUG`; REGISTRY is a part of the hash of the address, so that a skill of one registry is
never mistaken for one of another.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from roost.agents.library.hub.errors import HubSkillNotFound, HubVersionNotFound, InvalidHubRequest, RegistryFailed
from roost.agents.library.hub.model import skill_body
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.bundle import SKILL_FILE, Bundle, read_zip
from roost.agents.library.skills.model import LibrarySkill, NewSkill, complete_version
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.skill_file import SkillFile, parse_bundle
from roost.agents.library.skills.verdict import Verdict
from roost.core import log
from roost.core.machine.threads import run_in_daemon_thread
from roost.drivers.skill_registry.contract import FoundSkill, RegistryUnavailable, SkillRegistry

SHOWN = 20
"""Skills of one registry in a list."""
_MARK = "~"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NOT_OF_SLUG = re.compile(r"[^a-z0-9-]+")
_log = log.get_logger("hub")


@dataclass(frozen=True)
class RegistrySkill:
    """A skill of another server. source: the address of its registry."""

    id: str
    source: str
    name: str
    owner: str | None
    slug: str
    description: str
    version: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class RegistryDetail:
    """A skill of another server with its files, which were checked here."""

    skill: RegistrySkill
    file: SkillFile
    body: str
    bundle: Bundle
    verdict: Verdict


class HubRegistries:
    def __init__(self, registries: Sequence[SkillRegistry], hub: HubService, skills: SkillService) -> None:
        self._registries: Mapping[str, SkillRegistry] = {_key_of(one.url): one for one in registries}
        self._hub = hub
        self._skills = skills

    async def search(self, query: str) -> Sequence[RegistrySkill]:
        """Search all registries at once; those that fail are left out."""
        found = await asyncio.gather(*(self._search(key, query) for key in self._registries))
        return [skill for skills in found for skill in skills]

    async def get(self, tenant_id: str, hub_skill_id: str, version: str | None = None) -> RegistryDetail:
        """Download a version and check it. Raises HubSkillNotFound, RegistryFailed, InvalidBundle, InvalidSkill."""
        key, owner, slug = _parse_id(hub_skill_id)
        registry = self._registries.get(key)
        if registry is None:
            raise HubSkillNotFound
        try:
            found = await registry.find(slug, owner)
            number = version or (found.version if found else None)
            content = await registry.download(slug, owner, number) if found and number else None
        except RegistryUnavailable as error:
            _log.warning("skill_registry.failed", url=registry.url, reason=str(error))
            raise RegistryFailed(f"{RegistryFailed.message}: {registry.url}") from None
        if found is None:
            raise HubSkillNotFound
        if found.slug != slug or not _is_named(found):
            _log.warning("skill_registry.failed", url=registry.url, reason="it answered with another skill")
            raise RegistryFailed(f"{RegistryFailed.message}: {registry.url}")
        if content is None or number is None:
            raise HubVersionNotFound
        bundle = await run_in_daemon_thread(partial(read_zip, content))
        return RegistryDetail(
            _registry_skill(registry.url, key, found, number),
            parse_bundle(bundle),
            skill_body(bundle.files[SKILL_FILE].content),
            bundle,
            await self._skills.checker.check(tenant_id, bundle),
        )

    async def install(
        self, tenant_id: str, hub_skill_id: str, version: str | None = None, *, acknowledged: bool = False
    ) -> LibrarySkill:
        """Put a version into a tenant's library. Raises the errors of `get` and of `HubService.install`."""
        found = await self.get(tenant_id, hub_skill_id, version)
        number = complete_version(found.skill.version or "")
        new = NewSkill(version=number, keeps_version=version is None, slug=found.skill.slug)
        installed = await self._hub.install_bundle(
            tenant_id, found.bundle, new, found.file.name, None, acknowledged=acknowledged, verdict=found.verdict
        )
        _log.info("registry_skill.installed", url=found.skill.source, slug=found.skill.slug)
        return installed

    async def _search(self, key: str, query: str) -> Sequence[RegistrySkill]:
        registry = self._registries[key]
        try:
            found = await registry.search(query, SHOWN)
        except RegistryUnavailable as error:
            _log.warning("skill_registry.failed", url=registry.url, reason=str(error))
            return ()
        return [_registry_skill(registry.url, key, one, one.version) for one in found if _is_named(one)]


def is_registry_id(hub_skill_id: str) -> bool:
    """Return whether an id is of a skill of another server."""
    return _MARK in hub_skill_id


def _key_of(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:8]


def _parse_id(hub_skill_id: str) -> tuple[str, str | None, str]:
    key, owner, slug = ([*hub_skill_id.split(_MARK), "", ""])[:3]
    if not _PART.fullmatch(slug) or not (owner == "" or _PART.fullmatch(owner)) or hub_skill_id.count(_MARK) != 2:
        raise InvalidHubRequest(f"Invalid id of a skill: {hub_skill_id[:100]!r}")
    return key, owner or None, slug


def _is_named(found: FoundSkill) -> bool:
    return _PART.fullmatch(found.slug) is not None and (not found.owner or _PART.fullmatch(found.owner) is not None)


def _registry_skill(url: str, key: str, found: FoundSkill, version: str | None) -> RegistrySkill:
    return RegistrySkill(
        id=_MARK.join((key, found.owner or "", found.slug)),
        source=url,
        name=found.slug,
        owner=found.owner,
        slug=_library_slug(key, found),
        description=found.description,
        version=version,
        created_at=found.updated_at,
        updated_at=found.updated_at,
    )


def _library_slug(key: str, found: FoundSkill) -> str:
    """Return the slug in libraries, which tells registries and the local hub apart."""
    owner = _NOT_OF_SLUG.sub("-", (found.owner or "skills").lower())[:28].strip("-")
    return f"@{key}-{owner or 'skills'}/{found.slug[:64].replace('.', '-')}"
