"""A server whose changes of repositories fail at a step, as if it had ended there."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from roost.agents.workspace.git.manifests import RepositoryManifests
from roost.core.db import Database, DatabaseUnavailable
from roost.drivers.blob.contract import BlobStoreFailed, BlobWriter
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.git import repositories as repositories_module
from roost.drivers.git.manifest_contract import RepositoryManifest, RepositoryState
from roost.drivers.git.repositories import SandboxedRepositories
from tests.support.git_deployment import GitDeployment


class FailingBlobs(FolderStore):
    """A blob store that fails at a step."""

    step = ""

    async def create(self, key: str) -> BlobWriter:
        if self.step == "create":
            raise BlobStoreFailed
        writer = await super().create(key)
        if self.step == "commit":
            stored = writer.commit

            async def commit() -> None:
                await stored()
                end_server()

            cast("Any", writer).commit = commit
        return writer


@dataclass
class FailingManifests(RepositoryManifests):
    """Manifests that fail before or after they are stored, and are counted when they are read."""

    def __init__(self, db: Database, host: str) -> None:
        super().__init__(db, host)
        self.step = ""
        self.reads = list[str]()

    async def _lose_answer(self, agent_id: str, manifest: RepositoryManifest) -> None:
        """Be away for this attempt only, which stores the manifest or not."""
        step, self.step = self.step, ""
        if step == "away after":
            assert await super().replace(agent_id, manifest)

    async def read_state(self, agent_id: str) -> RepositoryState:
        self.reads.append("state")
        return await super().read_state(agent_id)

    async def load(self, agent_id: str) -> RepositoryManifest | None:
        self.reads.append("manifest")
        return await super().load(agent_id)

    async def replace(self, agent_id: str, manifest: RepositoryManifest) -> bool:
        if self.step == "before":
            end_server()
        if self.step.startswith("away"):
            if self.step != "away":
                await self._lose_answer(agent_id, manifest)
            raise DatabaseUnavailable
        is_replaced = await super().replace(agent_id, manifest)
        if self.step == "after":
            end_server()
        return is_replaced


@dataclass
class FailingServer:
    """A server whose changes fail at a step."""

    deployment: GitDeployment
    blobs: FailingBlobs = field(init=False)
    manifests: FailingManifests = field(init=False)

    def __post_init__(self) -> None:
        self.blobs = FailingBlobs(self.deployment.folder / "blobs")
        self.manifests = FailingManifests(self.deployment.db, "first")

    def open(self) -> SandboxedRepositories:
        return replace(self.deployment, blobs=self.blobs).open_server("first", manifests=self.manifests)

    def fail(self, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blobs.step = self.manifests.step = step
        if step == "reference":
            monkeypatch.setattr(repositories_module, "set_reference", end_server)


def end_server(*_: object) -> None:
    raise RuntimeError("as if the server had ended")
