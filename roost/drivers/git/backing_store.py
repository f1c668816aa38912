"""What keeps repositories beyond their folders: nothing, or the blob store of the deployment.

Packs become objects, and the manifest that names them is replaced, before a reference moves in the folder and before a
change is acknowledged. So the manifest is the repository, and the folder is brought to it before it is used.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from roost.core import clock, ids, log
from roost.core.periodic import Backoff
from roost.core.problem import DependencyAway
from roost.drivers.blob.contract import BlobNotFound, BlobStore, BlobStoreFailed
from roost.drivers.git.contract import MAIN, GitFailed, GitOutcomeUnknown, GitUnavailable, RepositoryUsage
from roost.drivers.git.manifest_contract import ManifestStore, RepositoryManifest, RepositoryState, StoredPack
from roost.drivers.git.repository_files import (
    draft_files,
    file_errors,
    list_whole_packs,
    open_pack_file,
    read_reference,
    remove_pack,
    set_reference,
)
from roost.drivers.git.runner import GitRunner
from roost.drivers.git.scripts import PENDING

References = Mapping[str, str | None]
"""Commits of `main` and `pending` of a `RepositoryState`."""

_CHUNK_BYTES = 4 * 1024**2
_ATTEMPTS = 3
_OUTCOME_SECONDS = 15.0
UNCHANGED: References = {}
_OTHER_SERVER = "Another server has changed the agent's Git repository meanwhile"
_log = log.get_logger("git")


class BackingStore:
    """Keeps nothing: the folders are the repositories.

    The caller of `refresh` and `save` holds the agent's lock; no command but that of a push writes meanwhile.
    """

    is_shared = False

    def __init__(self, runner: GitRunner) -> None:
        self._runner = runner

    async def read_state(self, agent_id: str) -> RepositoryState:
        """Return what is stored, with generation 0 if the folder has to be asked."""
        del agent_id
        return RepositoryState()

    async def is_current(self, agent_id: str) -> bool:
        """Return whether the folder has what is stored."""
        del agent_id
        return True

    async def refresh(self, agent_id: str) -> None:
        """Bring the folder to what is stored. Raises GitUnavailable, GitFailed."""

    @asynccontextmanager
    async def save(
        self, agent_id: str, references: References = UNCHANGED, *, is_collection: bool = False
    ) -> AsyncGenerator[None]:
        """Store the packs of the folder and the references that change; the block changes them in the folder.

        Raises GitUnavailable, also if another server has changed the repository since `refresh`, GitOutcomeUnknown if
        the database stays away, and GitFailed.
        """
        del agent_id, references, is_collection
        yield

    async def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        return await asyncio.to_thread(self._runner.measure_usage, agent_id)

    async def delete(self, agent_id: str) -> None:
        """Remove what is stored. Idempotent."""


class BucketStore(BackingStore):
    """Keeps packs in the blob store, and manifests where all servers find them."""

    is_shared = True

    def __init__(self, runner: GitRunner, blobs: BlobStore, manifests: ManifestStore) -> None:
        super().__init__(runner)
        self._blobs = blobs
        self._manifests = manifests
        self._generations: dict[str, int] = {}
        """Generations of the manifests that the folders have."""

    async def read_state(self, agent_id: str) -> RepositoryState:
        return await self._manifests.read_state(agent_id)

    async def is_current(self, agent_id: str) -> bool:
        return (await self._manifests.read_state(agent_id)).generation == self._generations.get(agent_id)

    async def refresh(self, agent_id: str) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            if await self.is_current(agent_id):
                break
            manifest = await self._manifests.load(agent_id)
            try:
                await (self._restore(agent_id, manifest) if manifest else self._adopt(agent_id))
                break
            except BlobNotFound:  # removed, if the manifest was replaced meanwhile
                if attempt == _ATTEMPTS or await self.read_state(agent_id) == (manifest and manifest.state):
                    raise GitFailed("The bucket lacks a pack of the agent's Git repository") from None

    @asynccontextmanager
    async def save(
        self, agent_id: str, references: References = UNCHANGED, *, is_collection: bool = False
    ) -> AsyncGenerator[None]:
        generation = self._generations.pop(agent_id, -1)  # after a failure, the folder may differ from what is stored
        old = await self._manifests.load(agent_id) or _new_manifest()
        if old.state.generation != generation:
            raise GitUnavailable(_OTHER_SERVER)
        new = await self._store_packs(agent_id, old)
        new = replace(new, state=replace(old.state, **references))
        if is_collection:
            new = replace(new, collected_at=clock.utc_now())
        if new != old:
            new = replace(new, state=replace(new.state, generation=generation + 1))
            await self._replace_manifest(agent_id, new)
        yield
        self._generations[agent_id] = new.state.generation

    async def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        manifest = await self._manifests.load(agent_id)
        if manifest is None:
            return None
        size = sum(pack.size for pack in manifest.packs)
        return RepositoryUsage(size, manifest.changed_at, manifest.collected_at)

    async def delete(self, agent_id: str) -> None:
        self._generations.pop(agent_id, None)
        await self._manifests.delete(agent_id)

    async def _adopt(self, agent_id: str) -> None:
        """Store a repository that the folder has from before repositories were stored."""
        self._generations[agent_id] = 0
        if main := await self._runner.read_head(agent_id):
            pending = read_reference(self._runner.path(agent_id), PENDING)
            async with self.save(agent_id, {"main": main, "pending": pending}):
                _log.info("repository.adopted", agent=agent_id)

    async def _restore(self, agent_id: str, manifest: RepositoryManifest) -> None:
        """Make the folder what a manifest says. Raises BlobNotFound, GitUnavailable, GitFailed."""
        path, state = self._runner.path(agent_id), manifest.state
        with file_errors():
            present = await asyncio.to_thread(list_whole_packs, path)
            missing = [pack for pack in manifest.packs if not pack.sizes.items() <= present.get(pack.name, {}).items()]
            for pack in missing:
                await self._fetch_pack(path, pack)
            for name, reference in ((MAIN, state.main), (PENDING, state.pending)):
                await asyncio.to_thread(set_reference, path, name, reference)
            stale = present.keys() - {pack.name for pack in manifest.packs}
            if not self._runner.writers[agent_id]:  # a push that goes on may have moved its pack here
                for name in stale:
                    await asyncio.to_thread(remove_pack, path, name)
        self._generations[agent_id] = state.generation
        _log.info("repository.restored", agent=agent_id, packs=len(missing), removed=len(stale))

    async def _replace_manifest(self, agent_id: str, new: RepositoryManifest) -> None:
        """Replace the manifest of the generation before, again if the answer was lost.

        Raises GitUnavailable if there is another one, and GitOutcomeUnknown.
        """
        deadline, pauses, is_repeated = clock.monotonic_seconds() + _OUTCOME_SECONDS, Backoff(0.1, 2.0), False
        while True:
            try:
                if await self._manifests.replace(agent_id, new):
                    return
                stored = await self._manifests.load(agent_id) if is_repeated else None
                if stored is not None and _content(stored) == _content(new):  # an earlier attempt stored it
                    return
                raise GitUnavailable(_OTHER_SERVER)
            except DependencyAway:
                if clock.monotonic_seconds() > deadline:
                    raise GitOutcomeUnknown from None
            is_repeated = True
            await pauses.pause()

    async def _store_packs(self, agent_id: str, manifest: RepositoryManifest) -> RepositoryManifest:
        """Return the manifest with exactly the packs of the folder, of which new ones are stored."""
        path = self._runner.path(agent_id)
        with file_errors(), _blob_errors():
            present = await asyncio.to_thread(list_whole_packs, path)
            packs = [pack for pack in manifest.packs if pack.name in present]
            known = {pack.name for pack in packs}
            packs += [await self._store_pack(path, *one) for one in present.items() if one[0] not in known]
        if packs == list(manifest.packs):
            return manifest
        return replace(manifest, packs=packs, changed_at=clock.utc_now())

    async def _store_pack(self, path: Path, name: str, sizes: Mapping[str, int]) -> StoredPack:
        key, digest = ids.random_bytes(16).hex(), hashlib.sha256()
        async with await self._blobs.create(key) as writer:
            for ending, size in sizes.items():
                with open_pack_file(path, f"{name}.{ending}") as file:
                    left = size
                    while left:
                        chunk = await asyncio.to_thread(file.read, min(left, _CHUNK_BYTES))
                        if not chunk:
                            raise GitFailed("A pack of the agent's Git repository became shorter while it was read")
                        left -= len(chunk)
                        await asyncio.to_thread(digest.update, chunk)
                        await writer.write(chunk)
            await writer.commit()
        return StoredPack(name, key, sizes, digest.hexdigest())

    async def _fetch_pack(self, path: Path, pack: StoredPack) -> None:
        digest, offset = hashlib.sha256(), 0
        with draft_files(path) as draft, _blob_errors():
            for ending, size in pack.sizes.items():
                with draft.open_file(f"{pack.name}.{ending}") as file:
                    async for chunk in self._blobs.stream(pack.key, offset, size, _CHUNK_BYTES):
                        await asyncio.to_thread(digest.update, chunk)
                        await asyncio.to_thread(file.write, chunk)
                offset += size
            if digest.hexdigest() != pack.digest:
                _log.error("pack.found_damaged", pack=pack.name, key=pack.key)
                raise GitFailed("A pack of the agent's Git repository is damaged in the bucket")
            await asyncio.to_thread(draft.publish)


def _new_manifest() -> RepositoryManifest:
    now = clock.utc_now()
    return RepositoryManifest(RepositoryState(), (), now, now)


def _content(manifest: RepositoryManifest) -> tuple[RepositoryState, set[str]]:
    return manifest.state, {pack.key for pack in manifest.packs}


@contextmanager
def _blob_errors() -> Generator[None]:
    """Raise GitUnavailable for errors of the blob store, except for a missing object."""
    try:
        yield
    except BlobStoreFailed as problem:
        raise GitUnavailable(f"The packs of the agent's Git repository cannot be reached: {problem.message}") from None
