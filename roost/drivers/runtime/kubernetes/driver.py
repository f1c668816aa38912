"""The Kubernetes runtime: a pod for each agent, and a claim for its files (decision 0059).

Pods belong to a deployment, not to a server: all of its servers see the same ones. A pod is never forced out of the
cluster, and its name is that of the agent, so no agent has two. The warden is reached by a bridge alone.
"""

import asyncio
import math
import ssl
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from roost.core import clock, ids, log
from roost.core.machine import process_priority
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.periodic import Backoff
from roost.core.problem import Problem, ProblemKind
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.bridges import Bridges
from roost.drivers.runtime.contract import (
    BRIDGE_PORT,
    Capabilities,
    Container,
    ContainerSpec,
    ContainerStartTimedOut,
    RelayListener,
    Runtime,
    RuntimeFailed,
)
from roost.drivers.runtime.docker.plan import PYTHON, WARDEN, read_only_files
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.agent_objects import AgentObjects
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.claim_meter import ClaimMeter
from roost.drivers.runtime.kubernetes.errors import KubernetesAlreadyExists, KubernetesNotFound, KubernetesUnreachable
from roost.drivers.runtime.kubernetes.exec_socket import connect_exec
from roost.drivers.runtime.kubernetes.maintenance import ClusterMaintenance
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.kubernetes.pod_state import PULLING, UNMOUNTED, PodState, explain_events, read_pod
from roost.drivers.runtime.kubernetes.probe import pod_enforcement, read_reached
from roost.drivers.runtime.kubernetes.watch import Reflector
from roost.drivers.runtime.probe_facts import read_facts
from roost.drivers.runtime.tls_carrier import open_tls_carrier
from roost.net.addresses import is_loopback, parse_address
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning

_LIST_SECONDS, _START_SECONDS, _PULL_SECONDS, _END_SECONDS = 10.0, 60.0, 900.0, 30.0
_LOOK_SECONDS, _ANSWER_SECONDS, _RECHECK_SECONDS = 5.0, 20.0, 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25
_MAINTENANCE_SECONDS = 5.0
_SLOTS, _KUBELET_PORT = 8, 10250
_log = log.get_logger("kubernetes")


class PodNotEnded(RuntimeFailed):
    """The pod is still there, and may run on a node that does not answer; another attempt may find it gone."""

    kind = ProblemKind.UNAVAILABLE


class KubernetesRuntime(Runtime):
    """Pods of one deployment in one namespace. folder: on the disk of this server whose space counts."""

    name = "kubernetes"
    is_shared = True

    def __init__(self, api: KubernetesApi, options: ClusterOptions, folder: Path) -> None:
        self._api, self._options = api, options
        self._objects = AgentObjects(api, options)
        self._bridges = Bridges(self._open_carrier)
        self._pods = Reflector(api, api.path("pods"), read_pod, labelSelector=options.selector)
        self._is_watching = False
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._maintenance = ClusterMaintenance(self._objects, self._pods, options)
        self._probing = asyncio.Lock()
        self._is_isolated, self._probed_at = False, -math.inf
        self.disk = ClaimMeter(folder, self._open_warden)

    def take_priority(self) -> None:
        process_priority.raise_own_priority()

    def prefer(self, agent_id: str) -> None:
        """Do nothing: the shares of pods do not change within a request's time."""

    def start_slots(self) -> int:
        return _SLOTS

    async def probe(self) -> Capabilities:
        agent_id = f"{plan.PROBE}{ids.new_host_label(10)}"
        try:
            await self._watch()
            await self._maintenance.run()
            found = await self._start_pod(ContainerSpec(agent_id, egress="proxy"))
            warden = self._open_warden(agent_id)
            url = urlsplit(self._api.access.url)
            addresses = [(found.host, _KUBELET_PORT), (url.hostname or "", url.port or 443)]
            known = {one for one in addresses if parse_address(one[0]) and not is_loopback(one[0])}
            reached = await read_reached(warden, sorted(known))
            self._is_isolated, self._probed_at = not reached, clock.monotonic_seconds()
            facts = await read_facts(warden, PYTHON[0])
            return Capabilities(usable=True, enforcement=pod_enforcement(facts, reached, self._options))
        except (Problem, OSError, ValueError, KeyError) as error:
            return Capabilities(usable=False, error=str(error) or type(error).__name__)
        finally:
            with suppress(Problem):
                await self.delete(agent_id)

    async def start(self, spec: ContainerSpec) -> Container:
        await self._watch()
        await self._maintenance.run_if_due()
        await self._require_isolation()
        async with self._lock(spec.agent_id):
            with suppress(KubernetesAlreadyExists):
                return _to_container(await self._start(spec))
            # Another server made the pod just now, or ends it, and the watch is behind.
            with suppress(TimeoutError):
                name = self._options.object_name(spec.agent_id)
                await self._pods.wait_for(name, lambda found: found is not None, _LOOK_SECONDS)
            try:
                return _to_container(await self._start(spec))
            except KubernetesAlreadyExists:
                raise ContainerStartTimedOut("Another server starts or ends the agent at this moment") from None

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        await self._watch()
        with suppress(Problem):  # a start that waits for this pod sees that at once; what fails here fails below, too
            await self._objects.delete_pod(self._options.object_name(agent_id), grace)
        async with self._lock(agent_id):
            await self._remove(agent_id, grace)

    async def delete(self, agent_id: str) -> None:
        await self._watch()
        async with self._lock(agent_id):
            await self._remove(agent_id, 0)
            await self._objects.delete_claim(agent_id)

    async def list(self) -> Sequence[Container]:
        await self._watch()
        try:
            async with asyncio.timeout(_MAINTENANCE_SECONDS):
                await self._maintenance.run_if_due()
        except (Problem, TimeoutError) as error:  # a start needs it, a list does not
            _log.warning("maintenance.failed", reason=str(error) or "timeout")
        running: list[Container] = []
        for found in list(self._pods.objects.values()):
            if plan.is_probe(found.agent_id) or found.is_deleted:
                continue
            if found.is_ready:
                running.append(_to_container(found))
                if self._bridges.has_relays(found.agent_id):  # the newest bridge has them: another server's stays it
                    self._bridges.keep(found.agent_id)
            elif found.is_final:
                _log.info("pod.ended", agent=found.agent_id, reason=found.problem)
                with suppress(Problem):  # the next look ends it
                    await self._objects.delete_pod(self._options.object_name(found.agent_id), 0, found.uid)
        for agent_id in self._bridges.list_kept():
            # Without relays the agent is another server's, whose bridge has to be the only one that is kept.
            if self._find(agent_id) is None or not self._bridges.has_relays(agent_id):
                await self._bridges.drop(agent_id)
        return running

    async def find_container(self, agent_id: str) -> Container | None:
        await self._watch()
        found = self._find(agent_id)
        return None if found is None or found.is_deleted or not found.is_ready else _to_container(found)

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        return await self._objects.read_memory(agent_ids)

    async def list_stored(self) -> Collection[str]:
        return [found for found in await self._objects.list_claims() if not plan.is_probe(found)]

    async def connect(self, agent_id: str) -> Stream:
        return await self._bridges.connect(agent_id)

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        return await self._bridges.listen(agent_id, relay, handler)

    async def close(self) -> None:
        """Stop watching the pods, which go on."""
        await self._maintenance.stop()
        await self._bridges.close()
        await self._pods.stop()
        await self._api.close()

    async def _watch(self) -> None:
        """Know the pods as they are now. Raises KubernetesUnreachable, KubernetesRefused."""
        await self._begin_watch()
        if self._pods.failure is not None:
            raise self._pods.failure

    async def _begin_watch(self) -> None:
        """Know the pods as they were when the API server last answered."""
        if not self._is_watching:
            self._is_watching = True
            self._pods.start()
        try:
            await self._pods.wait_listed(_LIST_SECONDS)
        except TimeoutError:
            reason = f"{self._api.access.url} gave no list of pods within {_LIST_SECONDS:.0f} s"
            raise KubernetesUnreachable(reason) from None

    async def _require_isolation(self) -> None:
        """Raise RuntimeFailed if pods reach the network, unless that is accepted."""
        if self._options.accepts_open_network or self._is_isolated:
            return
        async with self._probing:
            is_recent = clock.monotonic_seconds() - self._probed_at < _RECHECK_SECONDS
            if not self._is_isolated and not is_recent and (found := await self.probe()).error:
                raise RuntimeFailed(found.error)
        if not self._is_isolated:
            raise RuntimeFailed(
                "This cluster does not enforce network policies, so agents could reach all that its nodes reach. Use a "
                "network plugin that does, or accept it with kubernetes_accept_open_network"
            )

    async def _start(self, spec: ContainerSpec) -> PodState:
        """Return the pod that runs, or wait for the one that starts, if it is as specified; else start one.

        Raises KubernetesAlreadyExists if there is a pod that the watch has not shown.
        """
        present = self._find(spec.agent_id)
        if present is not None and (present.is_deleted or present.is_final or present.delete_only != spec.delete_only):
            await self._remove(spec.agent_id, 0, present.uid)
            present = None
        if present is None:
            return await self._start_pod(spec)
        if present.is_ready:
            return present
        return await self._wait_started(spec, present.uid)

    async def _start_pod(self, spec: ContainerSpec) -> PodState:
        uid: str | None = None
        try:
            uid = await self._objects.create(spec)
            return await self._wait_started(spec, uid)
        except KubernetesAlreadyExists:
            raise
        except BaseException:
            await asyncio.shield(self._clean_up(spec.agent_id, uid))
            raise

    async def _clean_up(self, agent_id: str, uid: str | None) -> None:
        """Remove the pod of a start that failed, as far as the API server lets us: the reconciler does the rest.

        `uid` is None if the answer to its creation was lost.
        """
        if (found := self._find(agent_id)) is not None:
            self._objects.forget(found.secret)
        try:
            await self._remove(agent_id, 0, uid)
        except Problem as problem:
            _log.warning("pod.not_removed", agent=agent_id, reason=problem.message)

    async def _wait_started(self, spec: ContainerSpec, uid: str) -> PodState:
        """Wait for the container and its warden, longer while its node loads the image.

        Raises ContainerStartTimedOut, RuntimeFailed, and ContainerNotRunning if the pod is ended meanwhile.
        """
        agent_id, began, was_seen, reported = spec.agent_id, clock.monotonic_seconds(), False, ""
        name = self._options.object_name(agent_id)

        def is_settled(found: PodState | None) -> bool:
            nonlocal was_seen
            if found is None or found.uid != uid:
                return was_seen
            was_seen = True
            return found.is_ready or found.is_final or found.is_deleted

        while True:
            with suppress(TimeoutError):
                found = await self._pods.wait_for(name, is_settled, _LOOK_SECONDS)
                if found is None or found.uid != uid or found.is_deleted:
                    raise ContainerNotRunning
                if found.is_final:
                    raise RuntimeFailed(found.problem)
                await self._wait_answer(found)
                if self._bridges.has_relays(agent_id):
                    self._bridges.keep(agent_id)
                return found
            seen = self._find(agent_id)
            reason = "" if seen is None else seen.problem
            cause = "" if reason else explain_events(await self._objects.list_events(uid))
            if cause.startswith(UNMOUNTED):  # another server may have deleted a ConfigMap that no pod used before
                self._objects.shared.forget_files()
                await self._objects.shared.ensure_files(read_only_files(spec))
            if spec.report_wait is not None and (reason or cause) not in ("", reported):
                reported = reason or cause
                await spec.report_wait(reported)
            is_pulling = cause.startswith(PULLING)
            if clock.monotonic_seconds() - began > (_PULL_SECONDS if is_pulling else _START_SECONDS):
                raise ContainerStartTimedOut(reason or cause or "The pod did not start in time")

    async def _wait_answer(self, pod: PodState) -> None:
        """Wait until the warden answers, which listens some milliseconds after its container runs."""
        backoff, deadline = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE), clock.monotonic_seconds() + _ANSWER_SECONDS
        while True:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._open_warden(pod.agent_id).ping()
                return
            except (ContainerNotRunning, TimeoutError):
                found = self._find(pod.agent_id)
                if found is None or found.uid != pod.uid or found.is_deleted:
                    raise ContainerNotRunning from None
                if found.is_final:
                    raise RuntimeFailed(found.problem) from None
                if clock.monotonic_seconds() > deadline:
                    raise ContainerStartTimedOut(
                        f"The warden at {pod.address} port {BRIDGE_PORT} does not answer: does a network policy keep "
                        "this server from it?"
                    ) from None
                await backoff.pause()

    async def _remove(self, agent_id: str, grace: float, uid: str | None = None) -> None:
        """Delete the pod, or only the one with this uid, and wait until it is gone. A node that is lost keeps it.

        Raises PodNotEnded.
        """
        name, backoff = self._options.object_name(agent_id), Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        try:
            async with asyncio.timeout(grace + _END_SECONDS):
                # The watch may be behind: only a pod that is not found is gone. A pod made meanwhile is another one.
                while (ending := await self._objects.delete_pod(name, grace, uid)) is not None:
                    uid = ending
                    await self._pods.wait_for(
                        name, lambda found, gone=ending: found is None or found.uid != gone, grace + _END_SECONDS
                    )
                    await backoff.pause()
        except TimeoutError:
            found = self._find(agent_id)
            node = f"its node {found.node}" if found is not None and found.node else "its node"
            raise PodNotEnded(
                f"The pod of the agent does not end: {node} does not answer. It may still run there, so it does not "
                "start elsewhere until the node is back, or is removed from the cluster"
            ) from None
        finally:
            if (found := self._find(agent_id)) is None or found.is_deleted:
                await self._bridges.drop(agent_id)

    async def _open_carrier(self, agent_id: str, bridge: Bridge) -> None:
        await self._begin_watch()  # the API server may be away: the certificate proves that a pod is the agent's
        found = self._find(agent_id)
        if found is None or found.is_deleted or not found.is_ready:
            raise ContainerNotRunning
        if self._options.uses_exec:
            pod = self._api.path("pods", self._options.object_name(agent_id))
            command = [*PYTHON, f"{WARDEN}/bridge_carrier.py", plan.BRIDGE_NAME]
            try:
                await connect_exec(self._api, pod, command, bridge, plan.CONTAINER)
            except KubernetesNotFound:
                raise ContainerNotRunning from None
            return
        if not found.address:
            raise ContainerNotRunning
        context = await self._objects.load_context(found.secret)
        try:
            await open_tls_carrier(found.address, BRIDGE_PORT, context, bridge)
        except ssl.SSLError:
            self._objects.forget(found.secret)  # it may have been replaced: the next attempt reads it
            raise

    def _open_warden(self, agent_id: str) -> WardenClient:
        return WardenClient(partial(self.connect, agent_id))

    def _find(self, agent_id: str) -> PodState | None:
        return self._pods.objects.get(self._options.object_name(agent_id))

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())


def _to_container(found: PodState) -> Container:
    started = datetime.fromisoformat(found.started_at[:19]).replace(tzinfo=UTC)
    return Container(found.agent_id, None, started, found.delete_only)
