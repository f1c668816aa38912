"""The library of skills on a database and a folder, as one of several servers has it."""

from pathlib import Path

from sqlalchemy import Connection

from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.bundle import Bundle, read_files
from roost.agents.library.skills.service import SkillService
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.blob.folder_store import FolderStore
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.identity.model import Tenant
from roost.storage.content.service import ContentService
from roost.storage.files.service import UNLIMITED, StorageQuota


class QuotaExceeded(Problem):
    message = "Quota exceeded"


class SwitchedQuota(StorageQuota):
    """`is_full`: no tenant has any space left."""

    is_full = False

    def __init__(self, db: Database) -> None:
        super().__init__(db, UNLIMITED)

    def check(self, connection: Connection, tenant: Tenant, more: int = 0) -> None:
        if self.is_full:
            raise QuotaExceeded


class SkillsEnv:
    """A tenant with a library."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.db = db
        self.quota = SwitchedQuota(db)
        self.blobs = FolderStore(folder / "blobs")
        self.content = ContentService(db, self.blobs)
        self.skills = SkillService(db, self.content, self.quota)
        self.hub = HubService(db, self.content, self.skills)
        self.publisher = HubPublisher(db, self.content, self.skills, self.quota)
        self.tenant = self.find_tenant("acme")

    def find_tenant(self, name: str) -> str:
        return self.db.run(lambda connection: tenants.ensure_tenant(connection, name, Plan.PAID).id)

    async def list_objects(self) -> set[str]:
        return {blob.key async for blob in self.blobs.list()}


def make_bundle(name: str = "notes", text: str = "Take notes.", **files: bytes) -> Bundle:
    head = f"---\nname: {name}\ndescription: Takes notes\n---\n\n{text}\n"
    return read_files([("SKILL.md", head.encode()), *files.items()])
