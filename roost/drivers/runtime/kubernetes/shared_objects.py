"""Objects that the pods of a deployment share: the policy of their network, and ConfigMaps of read-only files."""

from collections.abc import AsyncIterable, Awaitable, Collection, Sequence
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from typing import Any, cast

from roost.core import clock
from roost.drivers.runtime.docker.plan import ReadOnlyFiles, warden_files
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.errors import (
    JsonObject,
    KubernetesAlreadyExists,
    KubernetesConflict,
    KubernetesForbidden,
    KubernetesNotFound,
    KubernetesRefused,
    read_metadata,
)
from roost.drivers.runtime.kubernetes.plan import ClusterOptions

_ATTEMPTS = 3
_PAGE_MAPS = 10  # of at most 1 MiB each
_UNUSED_SECONDS = 86_400.0


class SharedObjects:
    def __init__(self, api: KubernetesApi, options: ClusterOptions) -> None:
        self._api, self._options = api, options
        self._known = set[str]()
        """ConfigMaps that are there."""

    async def ensure_policy(self) -> None:
        """Make the network policy of all pods as planned; what an operator changes in it does not stay."""
        for _ in range(_ATTEMPTS):  # another server may do the same at this moment
            with suppress(KubernetesAlreadyExists, KubernetesConflict):
                await self._write_policy()
                return

    async def ensure_files(self, found: Sequence[ReadOnlyFiles]) -> None:
        """Create the ConfigMaps of files that are not there."""
        for files in found:
            await self._ensure_map(files)

    def forget_files(self) -> None:
        """Create ConfigMaps again when they are needed: an operator or another server may have deleted them."""
        self._known.clear()

    async def remove_unused_files(self, used: Collection[str]) -> None:
        """Delete ConfigMaps of other versions that no pod mounts, once they are a day old.

        A server that starts a pod with one of them at this moment creates it again, and the node waits for it.
        """
        kept = {*used, *self._known, plan.map_name(self._options, warden_files())}
        path = self._api.path("configmaps")
        pages = self._api.pages(path, _PAGE_MAPS, labelSelector=self._options.selector)
        async with aclosing(pages):
            await remove_each(
                self._api.delete(f"{path}/{found['name']}", uid=found["uid"])
                async for items, _ in pages
                for found in map(read_metadata, items)
                if found["name"] not in kept and is_older(found, _UNUSED_SECONDS)
            )

    async def _write_policy(self) -> None:
        wanted = plan.network_policy(self._options)
        collection = self._api.path("networkpolicies", group="/apis/networking.k8s.io/v1")
        path = f"{collection}/{wanted['metadata']['name']}"
        try:
            found = await self._api.get(path)
        except KubernetesNotFound:
            await self._api.create(collection, wanted)
            return
        if _prune(found.get("spec")) != _prune(wanted["spec"]):
            version = {"path": "/metadata/resourceVersion", "value": read_metadata(found)["resourceVersion"]}
            spec = {"path": "/spec", "value": wanted["spec"]}
            await self._api.patch(path, [{"op": "replace", **one} for one in (version, spec)], "json-patch")

    async def _ensure_map(self, files: ReadOnlyFiles) -> None:
        name = plan.map_name(self._options, files)
        if name not in self._known:
            try:
                await self._api.create(self._api.path("configmaps"), plan.read_only_map(self._options, files))
            except KubernetesAlreadyExists:
                pass
            except KubernetesForbidden as error:  # a quota refuses even what is there
                if "exceeded quota" not in error.message:
                    raise
            self._known.add(name)


async def remove_each(removals: AsyncIterable[Awaitable[object]]) -> None:
    """Remove objects that may be gone already. One that the API server refuses does not keep the others.

    Raises the first refusal, after the last removal, and KubernetesUnreachable.
    """
    refusal: KubernetesRefused | None = None
    async for removal in removals:
        try:
            with suppress(KubernetesNotFound, KubernetesConflict):
                await removal
        except KubernetesRefused as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal


def is_older(metadata: JsonObject, seconds: float) -> bool:
    """Return whether an object was created longer ago. Raises KeyError, ValueError."""
    created = datetime.fromisoformat(str(metadata["creationTimestamp"]))
    return clock.utc_now() - created > timedelta(seconds=seconds)


def _prune(value: object) -> object:
    """Return a value without the empty fields of its objects, which the API server leaves out."""
    if isinstance(value, dict):
        fields = {name: _prune(field) for name, field in cast("dict[str, Any]", value).items()}
        return {name: field for name, field in fields.items() if field not in (None, [], {})}
    return [_prune(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
