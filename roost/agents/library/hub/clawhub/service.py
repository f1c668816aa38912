"""Publications that arrive by ClawHub's protocol: into the publisher's library, and from there into the hub.

A client may upload the files of a publication one by one before it; they are kept for an hour.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from roost.agents.library.hub import store
from roost.agents.library.hub.errors import HubFileNotFound, InvalidHubRequest, OwnerRefused, SkillUploadTooLarge
from roost.agents.library.hub.model import HubListing, HubReference, Publication
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.service import HubService, WantedVersion
from roost.agents.library.skills.bundle import BYTES_LIMIT, FILES_LIMIT, Bundle, read_files
from roost.agents.library.skills.model import NewSkill, parse_version
from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.skill_file import parse_bundle
from roost.core import clock, ids
from roost.core.db import Database
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import NotFound
from roost.core.ttl_cache import TTLCache
from roost.identity import tenants

LIFETIME = timedelta(hours=1)
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


@dataclass(frozen=True)
class UploadedSkillFile:
    """A file of a publication: its path and the id of its upload. sha256: what its client has."""

    path: str
    upload_id: str
    sha256: str


class HubUploads:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def announce(self, tenant_id: str, size: int) -> str:
        """Return the id for the upload of a file. Raises SkillUploadTooLarge beyond the size of one skill."""

        def insert(connection: Connection) -> str:
            tenants.lock_tenant(connection, tenant_id)  # parallel announcements must not pass the limit together
            store.delete_old_uploads(connection, clock.utc_now() - LIFETIME)
            count, stored = store.measure_uploads(connection, tenant_id)
            if count >= FILES_LIMIT or stored + size > BYTES_LIMIT:
                raise SkillUploadTooLarge(f"At most {FILES_LIMIT} files of {BYTES_LIMIT // 1000**2} MB in all")
            upload_id = ids.new_id()
            store.insert_upload(connection, upload_id, tenant_id, size, clock.utc_now())
            return upload_id

        return await self._db.write(insert)

    async def receive(self, tenant_id: str, upload_id: str, content: bytes) -> None:
        """Store the content of an announced file. Raises HubFileNotFound, InvalidHubRequest."""

        def save(connection: Connection) -> None:
            size = store.get_upload_size(connection, tenant_id, upload_id)
            if size is None:
                raise HubFileNotFound
            if size != len(content):
                raise InvalidHubRequest(f"The file must have the announced {size} bytes, got {len(content)}")
            store.set_upload(connection, upload_id, content)

        await self._db.write(save)

    async def collect(self, tenant_id: str, files: Sequence[UploadedSkillFile]) -> Bundle:
        """Return the uploaded files of a tenant. Raises InvalidHubRequest, InvalidBundle."""
        stored = await self._db.read(lambda connection: store.get_uploads(connection, tenant_id))
        for file in files:
            if file.upload_id not in stored:
                raise InvalidHubRequest(f"{file.path[:100]!r} is not uploaded")
            if hashlib.sha256(stored[file.upload_id]).hexdigest() != file.sha256.lower():
                raise InvalidHubRequest(f"{file.path[:100]!r} is not the file of that sha256")
        return await run_in_daemon_thread(partial(read_files, [(file.path, stored[file.upload_id]) for file in files]))

    async def remove(self, tenant_id: str) -> None:
        """Remove all files of a tenant."""
        await self._db.write(lambda connection: store.delete_uploads(connection, tenant_id))

    async def expire(self) -> None:
        """Remove old files of all tenants."""
        before = clock.utc_now() - LIFETIME
        await self._db.write(lambda connection: store.delete_old_uploads(connection, before))
