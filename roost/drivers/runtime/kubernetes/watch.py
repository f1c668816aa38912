"""Objects of one collection as a list and a watch keep them in memory, with waits for changes of one of them.

A list gives a resource version, a watch the changes since then; bookmarks move the version on while nothing changes. If
the server has forgotten it (410), the list is read again, in parts:
https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes. Lists are not streamed
(KEP-3157): parts of a list are as small, and older servers have them.
"""

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from roost.core import log
from roost.core.problem import Problem, ServerStopping
from roost.drivers.runtime.kubernetes import errors
from roost.drivers.runtime.kubernetes.api import KubernetesApi, add_jitter
from roost.drivers.runtime.kubernetes.errors import JsonObject, KubernetesUnreachable

_WATCH_SECONDS, _STALL_SECONDS, _GRACE_SECONDS = 400.0, 90.0, 30.0  # the server sends a bookmark each minute
_FIRST_PAUSE, _LONGEST_PAUSE, _DOUBLINGS = 0.1, 10.0, 9
_BUSY = frozenset({429, 500, 502, 503})  # the version may still be known
_RESUMPTIONS = 5  # without an event; a server that was restored is silent about versions of its future
_FINAL = (errors.KubernetesForbidden, errors.KubernetesNotFound, errors.KubernetesUnauthorized)

T = TypeVar("T")
Predicate = Callable[[T | None], bool]
_log = log.get_logger("kubernetes")


class Reflector(Generic[T]):
    """The objects of a collection in one namespace, by name; of each what `select` returns, if that is not None.

    objects: what is known now, or what was seen last while the server is away; to be read only. listeners: called with
    the name and the new value of an object, None if it is gone; they must not wait, nor may predicates. A change after
    which `select` returns an equal value is none. failure: why the list or the watch failed last, None while it works.
    """

    def __init__(self, api: KubernetesApi, path: str, select: Callable[[JsonObject], T | None], **query: Any) -> None:
        """`query` restricts the collection (`labelSelector`, `fieldSelector`)."""
        self._api, self._path, self._select, self._query = api, path, select, query
        self.objects: dict[str, T] = {}
        self.listeners: list[Callable[[str, T | None], None]] = []
        self._waiters: dict[str, list[tuple[Predicate[T], asyncio.Future[T | None]]]] = {}
        self._version, self._failures, self._is_listed = "", 0, False
        self._progress = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failure: Problem | None = None

    def start(self) -> None:
        """Begin to list and watch, until `stop`."""
        empty = contextvars.Context()  # the loop does not belong to the request that starts it
        self._task = asyncio.create_task(self._run(), name=f"reflector {self._path}", context=empty)

    async def stop(self) -> None:
        """End the watch, and waits for changes with ServerStopping. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        for _, found in [one for waiters in self._waiters.values() for one in waiters]:
            if not found.done():
                found.set_exception(ServerStopping())

    async def wait_listed(self, seconds: float) -> None:
        """Return when the list has been read once.

        Raises TimeoutError, or the reason: at once if the server does not let us list the collection.
        """
        try:
            async with asyncio.timeout(seconds):
                while not self._is_listed:
                    if isinstance(self.failure, _FINAL):
                        raise self.failure
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            raise self.failure or TimeoutError(f"no list of {self._path} within {seconds:.0f} s") from None

    async def wait_for(self, name: str, predicate: Predicate[T], seconds: float) -> T | None:
        """Return the first value of an object that satisfies a predicate, the present one or a later one.

        The value of an object that is not there is None. No value between two others is missed that the server sent.
        Raises TimeoutError, or the reason why the watch does not work now.
        """
        try:
            async with asyncio.timeout(seconds):
                await self.wait_listed(seconds)
                if predicate(value := self.objects.get(name)):
                    return value
                found: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
                waiters = self._waiters.setdefault(name, [])
                waiters.append(waiter := (predicate, found))
                try:
                    return await found
                finally:
                    waiters.remove(waiter)
                    if not waiters:
                        del self._waiters[name]
        except TimeoutError:
            raise self.failure or TimeoutError(f"no such change of {name} within {seconds:.0f} s") from None

    async def _run(self) -> None:
        while True:
            self._failures += 1  # until an event shows that the watch works
            try:
                if not self._version or self._failures > _RESUMPTIONS:
                    await self._list()
                await self._watch()
                self.failure = None
            except errors.KubernetesExpired:
                self._version = ""
            except Problem as error:
                if isinstance(error, errors.KubernetesRefused):
                    _log.warning("watch.refused", path=self._path, reason=error.message)
                    self._version = self._version if error.status in _BUSY else ""
                self._fail(error)
            except Exception:  # noqa: BLE001 - an object without what `select` needs
                _log.exception("reflector.failed", path=self._path)
                self._version = ""
                self._fail(KubernetesUnreachable(f"the API server sent an object of {self._path} that lacks a field"))
            pause = min(_FIRST_PAUSE * 2 ** min(self._failures, _DOUBLINGS), _LONGEST_PAUSE)
            await asyncio.sleep(add_jitter(pause))

    def _fail(self, error: Problem) -> None:
        self.failure = error
        self._progress.set()

    async def _list(self) -> None:
        """Read all objects, and forget those that are gone."""
        version, names = "", set[str]()
        async with aclosing(self._api.pages(self._path, **self._query)) as pages:
            async for items, version in pages:  # noqa: B007 - the last one counts
                names.update(map(self._keep, items))
        for name in self.objects.keys() - names:
            self._change(name, None)
        if not version:
            raise KubernetesUnreachable(f"the API server sent a list of {self._path} without a version")
        self._version, self._is_listed, self.failure = version, True, None
        self._progress.set()

    async def _watch(self) -> None:
        """Follow the changes until the server ends the watch, as it does after some minutes."""
        seconds = int(add_jitter(_WATCH_SECONDS))
        query = {**self._query, "resourceVersion": self._version, "timeoutSeconds": seconds}
        try:
            async with (
                asyncio.timeout(seconds + _GRACE_SECONDS),
                aclosing(self._api.watch(self._path, _STALL_SECONDS, self._clear_failure, **query)) as events,
            ):
                async for kind, item in events:
                    self._take(kind, item)
        except TimeoutError:
            raise KubernetesUnreachable(f"the API server did not end a watch of {seconds} s") from None

    def _clear_failure(self) -> None:
        self.failure = None

    def _take(self, kind: str, item: JsonObject) -> None:
        if kind == "ERROR":
            raise errors.make_refusal(item["code"], item)
        metadata = errors.read_metadata(item)
        if kind == "DELETED":
            self._change(str(metadata["name"]), None)
        elif kind != "BOOKMARK":
            self._keep(item)
        self._version = str(metadata["resourceVersion"])
        self._failures, self.failure = 0, None

    def _keep(self, item: JsonObject) -> str:
        name = str(errors.read_metadata(item)["name"])
        self._change(name, self._select(item))
        return name

    def _change(self, name: str, value: T | None) -> None:
        if self.objects.get(name) == value:
            return
        if value is None:
            del self.objects[name]
        else:
            self.objects[name] = value
        for predicate, found in self._waiters.get(name, ()):
            if not found.done() and predicate(value):
                found.set_result(value)
        for listener in tuple(self.listeners):
            try:
                listener(name, value)
            except Exception:  # noqa: BLE001 - one listener must not end the others' watch
                _log.exception("listener.failed", path=self._path, object=name)
