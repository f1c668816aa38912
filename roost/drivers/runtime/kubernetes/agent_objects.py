"""The objects of agents in a namespace, besides the watch of their pods: claims and certificates."""

import base64
import re
import ssl
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import ContainerSpec, ContainerStartTimedOut
from roost.drivers.runtime.docker.plan import read_only_files
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.errors import (
    JsonObject,
    KubernetesAlreadyExists,
    KubernetesConflict,
    KubernetesNotFound,
    KubernetesRefused,
    KubernetesUnreachable,
    read_metadata,
)
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.kubernetes.shared_objects import SharedObjects, is_older, remove_each
from roost.drivers.runtime.tls_carrier import make_bridge_certificate, make_bridge_context
from roost.warden_client.errors import ContainerNotRunning

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]i?|k|m?)")
_UNITS = {"m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


class AgentObjects:
    def __init__(self, api: KubernetesApi, options: ClusterOptions) -> None:
        self._api, self._options = api, options
        self._contexts: dict[str, ssl.SSLContext] = {}
        """TLS contexts of bridges, by the secret with their certificate."""
        self.shared = SharedObjects(api, options)

    async def create(self, spec: ContainerSpec) -> str:
        """Create the pod, and what it needs unless that is there; return the uid of the pod.

        Raises KubernetesAlreadyExists if there is a pod, and ContainerStartTimedOut while earlier files are deleted.
        """
        await self.shared.ensure_files(read_only_files(spec))
        if plan.is_probe(spec.agent_id):
            return await self._create_probe(spec)
        claim_uid = await self._ensure_claim(spec.agent_id)
        secret = "" if self._options.uses_exec else await self._ensure_secret(spec.agent_id, claim_uid)
        return await self._create_pod(spec, secret)

    async def delete_claim(self, agent_id: str) -> None:
        """Delete the claim with the files, which the cluster deletes its certificate after."""
        with suppress(KubernetesNotFound):
            await self._api.delete(self._api.path("persistentvolumeclaims", self._options.object_name(agent_id)))

    async def delete_old_probes(self, seconds: float) -> None:
        """Delete the claims that probes of earlier versions left."""
        path = self._api.path("persistentvolumeclaims")
        pages = self._api.pages(path, labelSelector=self._options.selector)
        async with aclosing(pages):
            await remove_each(
                self._api.delete(f"{path}/{found['name']}", uid=found["uid"])
                async for items, _ in pages
                for found in map(read_metadata, items)
                if plan.is_probe(str(found["labels"].get(plan.AGENT))) and is_older(found, seconds)
            )

    async def delete_pod(self, name: str, grace: float, uid: str | None = None) -> str | None:
        """Begin to end a pod; return its uid, None if there is none, or only another one than `uid`."""
        try:
            found = await self._api.delete(self._api.path("pods", name), uid=uid, grace=max(round(grace), 1))
        except (KubernetesNotFound, KubernetesConflict):
            return None
        return str(read_metadata(found)["uid"])

    async def list_claims(self) -> Sequence[str]:
        """List the agents that have a claim, besides those whose claim is being deleted."""
        found = [read_metadata(item) for item in await self._list_claims()]
        return [str(one["labels"][plan.AGENT]) for one in found if "deletionTimestamp" not in one]

    async def list_events(self, uid: str) -> Sequence[JsonObject]:
        """List the events of a pod; none if the API server does not give them."""
        with suppress(KubernetesRefused, KubernetesUnreachable):
            return await self._api.list(self._api.path("events"), fieldSelector=f"involvedObject.uid={uid}")
        return []

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        """Return what the metrics server says, if the cluster has one."""
        path = self._api.path("pods", group="/apis/metrics.k8s.io/v1beta1")
        try:
            found = await self._api.list(path, labelSelector=self._options.selector)
        except (KubernetesRefused, KubernetesUnreachable):
            return {}
        labels: list[JsonObject] = [read_metadata(item).get("labels") or {} for item in found]
        used = {str(one.get(plan.AGENT)): _sum_memory(item) for one, item in zip(labels, found, strict=True)}
        return {agent_id: used[agent_id] for agent_id in agent_ids if agent_id in used}

    async def load_context(self, secret: str) -> ssl.SSLContext:
        """Return the TLS context of a bridge, by its secret. Raises ContainerNotRunning if that is not there."""
        if secret not in self._contexts:
            try:
                found = await self._api.get(self._api.path("secrets", secret))
            except KubernetesNotFound:
                raise ContainerNotRunning from None
            self._contexts[secret] = _read_context(found)
        return self._contexts[secret]

    def forget(self, secret: str) -> None:
        """Read a secret, and create shared files, again when they are needed: an operator may have deleted them."""
        self._contexts.pop(secret, None)
        self.shared.forget_files()

    async def _create_pod(self, spec: ContainerSpec, secret: str) -> str:
        made = await self._api.create(self._api.path("pods"), plan.pod_object(self._options, spec, secret))
        return str(read_metadata(made)["uid"])

    async def _create_probe(self, spec: ContainerSpec) -> str:
        """Create a pod without a claim, and then its secret, which its node waits for: the pod owns it."""
        if self._options.uses_exec:
            return await self._create_pod(spec, "")
        pod_uid = await self._create_pod(spec, plan.secret_name(self._options, spec.agent_id, ""))
        certificate = make_bridge_certificate(spec.agent_id)
        body = plan.secret_object(self._options, spec.agent_id, certificate, pod_uid=pod_uid)
        await self._api.create(self._api.path("secrets"), body)
        return pod_uid

    async def _list_claims(self) -> Sequence[JsonObject]:
        return await self._api.list(self._api.path("persistentvolumeclaims"), labelSelector=self._options.selector)

    async def _ensure_claim(self, agent_id: str) -> str:
        """Return the uid of the claim. A quota counts even the creation of what is there, so it is read first."""
        path = self._api.path("persistentvolumeclaims", self._options.object_name(agent_id))
        try:
            claim = await self._api.get(path)
        except KubernetesNotFound:
            body = plan.claim_object(self._options, agent_id)
            try:
                claim = await self._api.create(self._api.path("persistentvolumeclaims"), body)
            except KubernetesAlreadyExists:
                claim = await self._api.get(path)
        metadata = read_metadata(claim)
        if "deletionTimestamp" in metadata:
            raise ContainerStartTimedOut("The earlier files of the agent are still being deleted")
        return str(metadata["uid"])

    async def _ensure_secret(self, agent_id: str, claim_uid: str) -> str:
        """Return the name of the secret of a claim; another claim of the agent has another one."""
        name = plan.secret_name(self._options, agent_id, claim_uid)
        path = self._api.path("secrets", name)
        try:
            found = await self._api.get(path)
        except KubernetesNotFound:
            body = plan.secret_object(self._options, agent_id, make_bridge_certificate(agent_id), claim_uid)
            try:
                found = await self._api.create(self._api.path("secrets"), body)
            except KubernetesAlreadyExists:
                found = await self._api.get(path)
        self._contexts[name] = _read_context(found)
        return name


def _read_context(secret: JsonObject) -> ssl.SSLContext:
    content = base64.b64decode(secret["data"][plan.CERTIFICATE])
    return make_bridge_context(Sensitive(content.decode()))


def _sum_memory(item: JsonObject) -> int:
    containers: Sequence[Mapping[str, Any]] = item.get("containers") or ()
    return sum(parse_quantity(str(found["usage"]["memory"])) for found in containers)


def parse_quantity(text: str) -> int:
    """Return a quantity of bytes, such as `128Mi`; 0 for what is none."""
    found = _QUANTITY.fullmatch(text)
    return 0 if found is None else round(float(found[1]) * _UNITS[found[2]])
