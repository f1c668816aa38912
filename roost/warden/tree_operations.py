"""Operations on whole trees of the workspace and the home."""

from __future__ import annotations

from .event_loop import READ, CoroutineTask, Future
from .light_imports import format_json, parse_json, suppress
from .protocol import RequestRefused
from .streams import is_disconnected
from .tree_apply import StagedChanges
from .tree_read import BUFFER_BYTES, read_batch, scan_tree
from .waiting import TaskLock, gather_results, run_in_thread, sleep_seconds, wait_until_done, wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .protocol import Connection, Json
    from .tree_read import LargeFile
    from .tree_watch import Batch, TreeWatch

MAX_WATCHES, COALESCE_SECONDS, GIVE_UP_SECONDS = 8, 0.1, 5.0


class TreeOperations:
    """One method per operation, which replies or raises RequestRefused or OSError."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        self._roots = roots
        self._applying: dict[str, tuple[Connection, Future[None]]] = {}
        self._watches = 0
        self.operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "scan": self._scan, "read_files": self._read_files, "apply": self._apply, "watch": self._watch,
        }  # fmt: skip

    async def _scan(self, request: Json, connection: Connection) -> None:
        walk = scan_tree(self._roots[request["root"]])
        await connection.send_reply()
        try:
            while frame := await run_in_thread(next, walk, b""):
                await connection.send_frame(b"d", frame)
        finally:
            await run_in_thread(walk.close)
        await connection.send_end()

    async def _read_files(self, request: Json, connection: Connection) -> None:
        """Receive frames of paths until an empty one; send rows in frames `f`, content in frames `d`."""
        root = self._roots[request["root"]]
        buffers = [memoryview(bytearray(BUFFER_BYTES)) for _ in range(2)]
        await connection.send_reply()
        while data := (await connection.read_frame())[1]:
            await _send_files(root, parse_json(data), buffers, connection)
        await connection.send_end()

    async def _apply(self, request: Json, connection: Connection) -> None:
        """Receive changes in frames `c`, each followed by content in frames `d`, until a frame `x`."""
        root = self._roots[request["root"]]
        present = self._applying.get(root)
        if present and is_disconnected(present[0].sock.fileno()):  # it gives up, which takes a moment
            await wait_until_done(present[1], seconds=GIVE_UP_SECONDS)
        if root in self._applying:
            raise RequestRefused("busy", "another apply is in progress")
        ended = Future[None]()
        self._applying[root] = connection, ended
        try:
            staged = await run_in_thread(StagedChanges, root, request.get("stamps", True))
            try:
                await connection.send_reply()
                stamps = await _receive_changes(staged, connection)
            finally:
                await run_in_thread(staged.close)
        finally:
            del self._applying[root]
            ended.set_result(None)
        await connection.send_items(stamps)
        await connection.send_end()

    async def _watch(self, request: Json, connection: Connection) -> None:
        """Send changed paths until the client disconnects; answer its frames once all changes before them are sent."""
        from .tree_watch import TreeWatch  # most wardens never need its memory

        if self._watches >= MAX_WATCHES:
            raise RequestRefused("busy", "too many watches")
        self._watches += 1
        try:
            root = self._roots[request["root"]]
            watch = await run_in_thread(TreeWatch, root)
            try:
                await connection.send_reply()
                sender = _WatchSender(watch, root, connection)
                with suppress(ConnectionError):  # the client disconnects
                    await gather_results(sender.send_changes(), sender.answer_checks())
            finally:
                await run_in_thread(watch.close)
        finally:
            self._watches -= 1


class _WatchSender:
    """Sends the changes of a watch in their order, of two tasks."""

    def __init__(self, watch: TreeWatch, root: str, connection: Connection) -> None:
        self._watch, self._root, self._connection, self._lock = watch, root, connection, TaskLock()

    async def send_changes(self) -> None:
        while True:
            await wait_until_ready(self._watch.fd, READ)
            await sleep_seconds(COALESCE_SECONDS)
            async with self._lock:
                await self._send_present_changes()

    async def answer_checks(self) -> None:
        """Answer each frame of the client by no paths, after the changes until then."""
        from .tree_watch import has_shared_mapping

        while await self._connection.read_frame():
            is_mapped = await run_in_thread(has_shared_mapping, self._root)
            async with self._lock:
                await self._send_present_changes()
                if is_mapped:
                    await self._send_batch(([], False))
                await self._send_batch(([], True))

    async def _send_present_changes(self) -> None:
        if changes := await run_in_thread(self._watch.read_changes):
            await self._send_batch(changes)

    async def _send_batch(self, changes: Batch) -> None:
        await self._connection.send_frame(b"d", format_json(changes).encode())


async def _send_files(root: str, paths: list[str], buffers: list[memoryview], connection: Connection) -> None:
    """Send files in batches; each is read while the one before it is sent."""
    reading = CoroutineTask(run_in_thread(read_batch, root, paths, buffers[0]))
    try:
        while (batch := await reading).rows:
            paths = paths[len(batch.rows) :]
            buffers.reverse()
            reading = CoroutineTask(run_in_thread(read_batch, root, paths, buffers[0]))
            try:
                await connection.send_frame(b"f", format_json(batch.rows).encode())
                if batch.content is not None:
                    await connection.send_frame(b"d", batch.content)
                if batch.large:
                    await _send_parts(batch.large, buffers[1], connection)
            finally:
                if batch.large:
                    batch.large.close()
    finally:
        await wait_until_done(reading)
        if not reading.exception() and (large := reading.result().large):  # what is read is no longer wanted
            large.close()


async def _send_parts(file: LargeFile, buffer: memoryview, connection: Connection) -> None:
    """Send the content of a large file, and whether it changed as a frame `e`."""
    while part := await run_in_thread(file.read_part, buffer):
        await connection.send_frame(b"d", part)
    await connection.send_frame(b"e", format_json(await run_in_thread(file.is_changed)).encode())


async def _receive_changes(staged: StagedChanges, connection: Connection) -> list[tuple[int, int, int] | None]:
    while True:
        kind, data = await connection.read_frame()
        if kind == b"c":
            await run_in_thread(staged.add_changes, parse_json(data))
        elif kind == b"d":
            await run_in_thread(staged.write, data)
        else:
            return await run_in_thread(staged.commit)
