"""Kubelets: they run the containers of pods through a hook of the test and write the status of pods."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from tests.support.kubernetes.event_log import record_event
from tests.support.kubernetes.resources import BY_KIND, Object
from tests.support.kubernetes.store import Change, Store
from tests.support.kubernetes.writes import Writer, timestamp


@dataclass(frozen=True)
class ContainerExit:
    """How a container ended; `reason` is `Completed`, `Error` or `OOMKilled`."""

    code: int
    reason: str = ""

    def state(self, started: str, container: str) -> Object:
        reason = self.reason or ("Completed" if self.code == 0 else "Error")
        return {"exitCode": self.code, "reason": reason, "startedAt": started, "finishedAt": timestamp(),
                "containerID": container}  # fmt: skip


OUT_OF_MEMORY = ContainerExit(137, "OOMKilled")


@dataclass
class PodRun:
    """A pod whose containers run. The hook starts something on `address`, and returns when it has ended.

    It should end when `stopping` is set; it is cancelled when the grace period is over.
    """

    pod: Object
    address: str
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


RunPod = Callable[[PodRun], Awaitable[ContainerExit]]


async def run_until_stopped(run: PodRun) -> ContainerExit:
    """Run nothing until the pod is deleted; the default hook."""
    await run.stopping.wait()
    return ContainerExit(0)


@dataclass
class ImagePulls:
    """How images are pulled: `delay` in seconds, the images that are `present`, and errors of pulls by image."""

    delay: float = 0
    present: set[str] = field(default_factory=set[str])
    errors: dict[str, str] = field(default_factory=dict[str, str])
    retry: float = 0.05


class Kubelet:
    """Runs the pods that are bound to nodes. A test sets `run_pod`, `pulls`, and `mount_errors` by claim.

    `start_pod` is awaited before a pod is reported as running, as a kubelet reports most pods some time after they run.
    """

    def __init__(self, store: Store, writer: Writer) -> None:
        self.run_pod: RunPod = run_until_stopped
        self.start_pod: Callable[[PodRun], Awaitable[None]] | None = None
        self.pulls = ImagePulls()
        self.mount_errors: dict[str, str] = {}
        self.lost: set[str] = set()
        self.restart_delay = 0.05
        self._store, self._writer = store, writer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, PodRun] = {}
        self._addresses = count(1)
        store.listeners.append(self._handle)

    async def stop(self) -> None:
        """End every pod's hook."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def recover(self, node: str) -> None:
        """Let a lost node's kubelet work again: it ends the pods that were deleted in the meantime."""
        self.lost.discard(node)
        for pod in self._store.objects("Pod"):
            if pod["spec"].get("nodeName") == node:
                self._sync(pod)

    def end_pod(self, uid: str) -> None:
        """End the processes of a pod, as the loss of its machine does."""
        if task := self._tasks.get(uid):
            task.cancel()

    def _handle(self, change: Change) -> None:
        if change.resource.kind != "Pod":
            return
        if change.now:
            self._sync(change.now.object)
        elif change.before and change.before.object["spec"].get("nodeName") not in self.lost:
            self._stop_run(change.before.object["metadata"]["uid"])

    def _sync(self, pod: Object) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if not node or node in self.lost:
            return
        if "deletionTimestamp" in pod["metadata"]:
            self._stop_run(uid)
            if uid not in self._tasks:
                asyncio.get_running_loop().call_soon(self._finish, pod)
        elif uid not in self._tasks and pod["status"].get("phase") == "Pending":
            task = asyncio.get_running_loop().create_task(self._run(pod))
            self._tasks[uid] = task
            task.add_done_callback(lambda _: self._ended(pod))

    def _stop_run(self, uid: str) -> None:
        if run := self._runs.get(uid):
            run.stopping.set()
        elif task := self._tasks.get(uid):
            task.cancel()

    def _ended(self, pod: Object) -> None:
        self._tasks.pop(pod["metadata"]["uid"], None)
        live = self._live(pod)
        if live and "deletionTimestamp" in live["metadata"] and live["spec"]["nodeName"] not in self.lost:
            self._finish(live)

    def _finish(self, pod: Object) -> None:
        """Delete the pod object, whose containers have ended."""
        live = self._live(pod)
        if live and live["spec"]["nodeName"] not in self.lost:
            key = (live["metadata"]["namespace"], live["metadata"]["name"])
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": live["metadata"]["uid"]}}
            self._writer.delete(BY_KIND["Pod"], key, options)

    def _live(self, pod: Object) -> Object | None:
        live = self._store.get("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
        return live if live and live["metadata"]["uid"] == pod["metadata"]["uid"] else None

    async def _run(self, pod: Object) -> None:
        number, state = next(self._addresses), _State()
        high, low = divmod(os.getpid(), 250)  # other processes run clusters, too
        address = f"127.{2 + low}.{(high + number // 254) % 256}.{1 + number % 254}"
        await asyncio.sleep(0)
        self._write(pod, state)
        await self._mount(pod)
        state.sandbox = True
        self._write(pod, state)
        state.address = address
        await self._pull(pod, state)
        while True:
            run = PodRun(pod, address)
            if self.start_pod is not None:
                await self.start_pod(run)
            started = timestamp()
            for verb in ("Created", "Started"):
                self._note_containers(pod, verb, f"Container {verb.lower()}")
            state.phase, state.container = (
                "Running",
                f"containerd://{pod['metadata']['uid'].replace('-', '')}{state.restarts:032x}",
            )
            state.current = {"running": {"startedAt": started}}
            self._write(pod, state)
            self._runs[pod["metadata"]["uid"]] = run
            try:
                ended = await self._run_hook(run)
            finally:
                del self._runs[pod["metadata"]["uid"]]
            state.current = {"terminated": ended.state(started, state.container)}
            policy = pod["spec"]["restartPolicy"]
            state.over = run.stopping.is_set() or policy == "Never" or (policy == "OnFailure" and not ended.code)
            if state.over:
                state.phase, state.sandbox = "Failed" if ended.code else "Succeeded", False
                self._write(pod, state)
                return
            self._write(pod, state)
            state.last = state.current
            if state.restarts:
                await self._back_off(pod, state)
            state.restarts += 1

    async def _back_off(self, pod: Object, state: "_State") -> None:
        metadata, name = pod["metadata"], pod["spec"]["containers"][0]["name"]
        full = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        self._note(pod, "BackOff", f"Back-off restarting failed container {name} in pod {full}", name, warning=True)
        message = f"back-off 10s restarting failed container={name} pod={full}"
        state.current = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        self._write(pod, state)
        await asyncio.sleep(self.restart_delay)

    async def _run_hook(self, run: PodRun) -> ContainerExit:
        hook = asyncio.ensure_future(self.run_pod(run))
        stopping = asyncio.ensure_future(run.stopping.wait())
        try:
            await asyncio.wait({hook, stopping}, return_when="FIRST_COMPLETED")
            if not hook.done():
                self._note_containers(run.pod, "Killing", "Stopping container")
                live = self._live(run.pod)
                grace = live["metadata"].get("deletionGracePeriodSeconds", 0) if live else 0
                await asyncio.wait({hook}, timeout=grace)
            return hook.result() if hook.done() else ContainerExit(137)
        finally:
            stopping.cancel()
            hook.cancel()
            with suppress(asyncio.CancelledError):
                await hook

    async def _mount(self, pod: Object) -> None:
        for volume in pod["spec"].get("volumes", ()):
            while error := self._find_mount_error(pod["metadata"]["namespace"], volume):
                message = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                self._note(pod, "FailedMount", message, warning=True)
                await asyncio.sleep(self.pulls.retry)

    def _find_mount_error(self, namespace: str, volume: Object) -> str | None:
        for kind, key, name in (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")):
            source = volume.get(key, {})
            if source and not source.get("optional") and not self._store.get(kind, namespace, source[name]):
                return f'{kind.lower()} "{source[name]}" not found'
        return self.mount_errors.get(volume.get("persistentVolumeClaim", {}).get("claimName"))

    async def _pull(self, pod: Object, state: "_State") -> None:
        for container in pod["spec"]["containers"]:
            image, name = container["image"], container["name"]
            if container["imagePullPolicy"] == "IfNotPresent" and image in self.pulls.present:
                message = f'Container image "{image}" already present on machine and can be accessed by the pod'
                self._note(pod, "Pulled", message, name)
                continue
            self._note(pod, "Pulling", f'Pulling image "{image}"', name)
            await asyncio.sleep(self.pulls.delay)
            while error := self.pulls.errors.get(image):
                await self._fail_pull(pod, state, image, name, error)
            seconds = f"{round(self.pulls.delay * 1000)}ms"
            pulled = f'Successfully pulled image "{image}" in {seconds} ({seconds} including waiting).'
            self._note(pod, "Pulled", f"{pulled} Image size: 1024 bytes.", name)
            self.pulls.present.add(image)

    async def _fail_pull(self, pod: Object, state: "_State", image: str, name: str, error: str) -> None:
        self._note(pod, "Failed", f'Failed to pull image "{image}": {error}', name, warning=True)
        back_off = f'Back-off pulling image "{image}"'
        for reason, message in (("ErrImagePull", error), ("ImagePullBackOff", f"{back_off}: ErrImagePull: {error}")):
            if reason == "ImagePullBackOff":
                self._note(pod, "BackOff", back_off, name)
            self._note(pod, "Failed", f"Error: {reason}", name, warning=True)
            state.current = {"waiting": {"reason": reason, "message": message}}
            self._write(pod, state)
            await asyncio.sleep(self.pulls.retry)

    def _note_containers(self, pod: Object, reason: str, message: str) -> None:
        for container in pod["spec"]["containers"]:
            name = container["name"]
            self._note(pod, reason, f"{message} {name}" if reason == "Killing" else message, name)

    def _note(self, pod: Object, reason: str, message: str, container: str = "", *, warning: bool = False) -> None:
        if live := self._live(pod):
            node = pod["spec"]["nodeName"]
            record_event(
                self._store, live, reason, message, source="kubelet", node=node, container=container, warning=warning
            )

    def _write(self, pod: Object, state: "_State") -> None:
        """Write the status as a kubelet does."""
        if not (live := self._live(pod)) or live["spec"]["nodeName"] in self.lost:
            return
        node = self._store.get("Node", "", live["spec"]["nodeName"])
        host = node["status"]["addresses"][0]["address"] if node else "127.0.0.1"
        self._writer.change(live, lambda found: {**found, "status": _status(found, state, host)})


@dataclass
class _State:
    """What the kubelet knows of a pod: its phase, and the states of its containers, which are all the same."""

    phase: str = "Pending"
    current: Object = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last: Object = field(default_factory=dict)
    restarts: int = 0
    container: str = ""
    address: str = ""
    sandbox: bool = False
    over: bool = False


def _status(live: Object, state: _State, host: str) -> Object:
    running = "running" in state.current
    shown: Object = {"ready": running, "started": running, "restartCount": state.restarts, "state": state.current,
                     "lastState": state.last, "imageID": f"sha256:{'0' * 64}" if state.container else ""}  # fmt: skip
    shown |= {"containerID": state.container} if state.container else {}
    containers = [{"name": one["name"], "image": one["image"], **shown} for one in live["spec"]["containers"]]
    status = {**live["status"], "phase": state.phase, "observedGeneration": live["metadata"].get("generation", 1)}
    status |= {"conditions": _conditions(live, state), "containerStatuses": containers, "hostIP": host}
    status |= {"hostIPs": [{"ip": host}], "resources": {}}
    status.setdefault("startTime", timestamp())
    if address := host if live["spec"].get("hostNetwork") else state.address:
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    return status


def _conditions(live: Object, state: _State) -> list[Object]:
    before = {one["type"]: one for one in live["status"].get("conditions", ())}
    names = " ".join(one["name"] for one in live["spec"]["containers"])
    ready = {"status": "False", "reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
    if "running" in state.current:
        ready = {"status": "True"}
    elif state.over:
        ready = {"status": "False", "reason": "PodFailed" if state.phase == "Failed" else "PodCompleted"}
    wanted = {"PodReadyToStartContainers": {"status": str(state.sandbox)}, "Initialized": {"status": "True"},
              "Ready": ready, "ContainersReady": ready, "PodScheduled": {"status": "True"}}  # fmt: skip
    found: list[Object] = []
    for kind, fields in wanted.items():
        same = before.get(kind, {}).get("status") == fields["status"]
        changed = before[kind]["lastTransitionTime"] if same else timestamp()
        found.append({"type": kind, "lastProbeTime": None, "lastTransitionTime": changed, **fields,
                      "observedGeneration": live["metadata"].get("generation", 1)})  # fmt: skip
    return found + [one for kind, one in before.items() if kind not in wanted]
