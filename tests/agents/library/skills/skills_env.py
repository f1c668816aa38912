"""The library of skills on a database and a folder, as one of several servers has it."""

from pathlib import Path
from typing import Any

from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.bundle import Bundle, read_files
from roost.agents.library.skills.service import SkillService
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.blob.folder_store import FolderStore
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.storage.content.service import ContentService
from roost.storage.files.service import find_file_cid


class QuotaExceeded(Problem):
    message = "Quota exceeded"


class SkillsEnv:
    """A tenant with a library. `is_full`: the tenant has no space left."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.db = db
        self.is_full = False
        self.blobs = FolderStore(folder / "blobs")
        self.content = ContentService(db, self.blobs)
        self.skills = SkillService(db, self.content, self._check_quota, find_file_cid)
        self.hub = HubService(db, self.content, self.skills)
        self.publisher = HubPublisher(db, self.content, self.skills, self._check_quota)
        self.tenant = self.find_tenant("acme")

    def find_tenant(self, name: str) -> str:
        return self.db.run(lambda connection: tenants.ensure_tenant(connection, name, Plan.PAID).id)

    async def list_objects(self) -> set[str]:
        return {blob.key async for blob in self.blobs.list()}

    def _check_quota(self, *_: Any) -> None:
        if self.is_full:
            raise QuotaExceeded


def make_bundle(name: str = "notes", text: str = "Take notes.", **files: bytes) -> Bundle:
    head = f"---\nname: {name}\ndescription: Takes notes\n---\n\n{text}\n"
    return read_files([("SKILL.md", head.encode()), *files.items()])
