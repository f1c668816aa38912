"""Files that a client of ClawHub uploads one by one before it publishes them; they are kept for an hour."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from roost.agents.library.hub import store
from roost.agents.library.hub.errors import HubFileNotFound, InvalidHubRequest, SkillUploadTooLarge
from roost.agents.library.skills.bundle import BYTES_LIMIT, FILES_LIMIT, Bundle, read_files
from roost.core import clock, ids
from roost.core.db import Database
from roost.core.machine.threads import run_in_daemon_thread
from roost.identity import tenants

LIFETIME = timedelta(hours=1)


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
            tenants.lock_tenant(connection, tenant_id)
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
