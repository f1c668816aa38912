"""Read-only volumes: filled once through a container that never runs, found by name, and shared by all containers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from roost.core import clock, ids
from roost.drivers.runtime.docker import plan
from roost.drivers.runtime.docker.engine_api import CONFLICT, EngineApi, suppress_status

_CONTENT, _DRAFT, _SOFTWARE = "roost.content", "roost.draft", "roost.software"
_DRAFT_SECONDS = 3600


class ReadOnlyVolumes:
    """Volumes by a name that says what is in them.

    A volume cannot be renamed or marked when it is complete. So the volume with the name is empty, is created last, and
    has a label with the name of the one that was filled.
    """

    def __init__(self, api: EngineApi) -> None:
        self._api = api
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def ensure(
        self, name: str, target: str, image: str, pack: Callable[[], bytes | AsyncIterable[bytes]], software: str = ""
    ) -> str:
        """Return the volume with the content, filled if missing.

        target: path in the container. pack: returns an archive of what is in it. software: which content this is the
        newest of; volumes with earlier content are removed unless they are in use. Raises the errors of EngineApi.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            if complete := await find_volume(self._api, name):
                return complete["Labels"][_CONTENT]
            for draft in await self._list(_DRAFT, name):  # of a server that was killed
                await self._delete(draft["Name"])
            volume = f"{name}-{ids.new_host_label(10)}"
            try:
                await self._fill(volume, name, target, image, pack())
                labels = {_CONTENT: volume, _SOFTWARE: software}
                content = (await create_volume(self._api, name, labels))["Labels"][_CONTENT]
            except BaseException:
                await asyncio.shield(self._delete(volume))
                raise
            if content != volume:  # another process was faster
                await self._delete(volume)
            for earlier in await self._list(_SOFTWARE, software) if software else ():
                if earlier["Name"] != name and await self._delete(earlier["Labels"][_CONTENT]):
                    await self._delete(earlier["Name"])
            return content

    async def _fill(
        self, volume: str, name: str, target: str, image: str, archive: bytes | AsyncIterable[bytes]
    ) -> None:
        await create_volume(self._api, volume, {_DRAFT: name})
        async with open_draft(self._api, image, name, [plan.mount_volume(target, volume)]) as container:
            await self._api.put_archive(container, target, archive)

    async def _list(self, label: str, value: str) -> list[Mapping[str, Any]]:
        return (await self._api.call("GET", "/volumes", filters={"label": [f"{label}={value}"]}))["Volumes"] or []

    async def _delete(self, volume: str) -> bool:
        """Return whether the volume is gone, which one in use is not."""
        with suppress_status(CONFLICT):
            await delete_volume(self._api, volume)
            return True
        return False


@asynccontextmanager
async def open_draft(
    api: EngineApi, image: str, name: str, mounts: Sequence[Mapping[str, Any]] = ()
) -> AsyncGenerator[str]:
    """Create a container that never runs, and remove it; yields its id. `name` says what it is for."""
    latest = clock.utc_now().timestamp() - _DRAFT_SECONDS
    for found in await api.call("GET", "/containers/json", all=1, filters={"label": [f"{_DRAFT}={name}"]}):
        if found["Created"] < latest:  # of a server that was killed
            await _remove_container(api, found["Id"])
    body = {
        "Image": image,
        "Entrypoint": ["true"],
        "NetworkDisabled": True,
        "Labels": {_DRAFT: name},
        "HostConfig": {"Mounts": mounts},
    }
    creating = asyncio.create_task(api.call("POST", "/containers/create", body))
    try:
        yield (await asyncio.shield(creating))["Id"]
    finally:  # the engine creates it also for a client that has gone
        await asyncio.shield(_remove_draft(api, creating))


async def _remove_draft(api: EngineApi, creating: asyncio.Task[Mapping[str, Any]]) -> None:
    await asyncio.wait([creating])
    if creating.exception() is None:
        await _remove_container(api, creating.result()["Id"])


async def _remove_container(api: EngineApi, container: str) -> None:
    with suppress_status():
        await api.call("DELETE", f"/containers/{container}", force=1, v=1)


async def create_volume(api: EngineApi, name: str, labels: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a volume, created if missing."""
    return await api.call("POST", "/volumes/create", {"Name": name, "Labels": labels})


async def find_volume(api: EngineApi, name: str) -> Mapping[str, Any] | None:
    with suppress_status():
        return await api.call("GET", f"/volumes/{name}")
    return None


async def delete_volume(api: EngineApi, name: str) -> None:
    """Delete a volume. Idempotent. Raises EngineRefused if a container has it."""
    with suppress_status():
        await api.call("DELETE", f"/volumes/{name}", force=1)
