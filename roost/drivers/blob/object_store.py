"""Objects of S3, Google Cloud Storage or Azure, through obstore, under a prefix of a bucket.

An address names the place (`s3://bucket/prefix`, `gs://`, `az://`); endpoint, region and credentials come from the
environment by the provider's own names (`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`).
What is larger than one part is sent in parts while it comes; parts that a crash leaves are the bucket's to remove (a
lifecycle rule for incomplete uploads): the library does not list them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, ClassVar, Literal, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import AzureStore, GCSStore, S3Store, from_url

from roost.core import ids, log
from roost.core.problem import Problem
from roost.drivers.blob.contract import KEY, BlobInfo, BlobNotFound, BlobStore, BlobStoreFailed, BlobWriter

SCHEMES = ("s3://", "gs://", "az://")
PART = 8 * 1024**2
"""Bytes. Services take 10,000 parts: no object is larger than 78 GiB."""
_PARTS_AT_ONCE = 3
_WINDOW = 4 * 1024**2
_RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_REPLACES = "the backend replaces objects without being asked; every object is looked for before it is written"

_Store = S3Store | GCSStore | AzureStore
_log = log.get_logger("blobs")


class ObjectStore(BlobStore):
    name: ClassVar[str] = "objects"

    def __init__(self, url: str) -> None:
        """Raises BlobFailed for an address that is none."""
        self._url = url
        self._refuses = True  # to replace an object, as far as is known
        try:
            self._store = cast("_Store", from_url(url, retry_config=_RETRIES))
        except (BaseError, ValueError) as error:
            raise BlobStoreFailed(f"{url} is no address of objects: {_first_line(error)}") from None

    async def probe(self) -> str | None:
        key = ids.random_bytes(16).hex()
        try:
            self._refuses = await self._is_refused(key)
            found = bytes(await obstore.get_range_async(self._store, key, start=0, length=5))
            await obstore.delete_async(self._store, key)
        except Exception as error:  # noqa: BLE001 - the library panics at some endpoints, with an error of its own
            raise BlobStoreFailed(f"Objects cannot be kept in {self._url}: {_first_line(error)}") from None
        if found != b"roost":
            raise BlobStoreFailed(f"What is written to {self._url} is not what is read there")
        return None if self._refuses else _REPLACES

    async def create(self, key: str) -> BlobWriter:
        return _ObjectWriter(self._store, _checked(key), refuses=self._refuses)

    async def read(self, key: str, offset: int, length: int) -> bytes:
        with _translated():
            found = await self._range(_checked(key), offset, length)
        if len(found) != length:
            raise BlobNotFound
        return found

    async def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        """A window at a time, so that no slow reader holds a connection open."""
        window = max(1, _WINDOW // piece) * piece
        end = offset + length
        for at in range(offset, end, window):
            found = memoryview(await self.read(key, at, min(window, end - at)))
            for begin in range(0, len(found), piece):
                yield bytes(found[begin : begin + piece])

    async def delete(self, key: str) -> None:
        with _translated(), suppress(FileNotFoundError):
            await obstore.delete_async(self._store, _checked(key))

    async def list(self) -> AsyncIterator[BlobInfo]:
        with _translated():
            async for page in obstore.list(self._store):  # pyright: ignore[reportUnknownMemberType] - its Arrow overloads
                for found in page:
                    if KEY.fullmatch(found["path"]):
                        yield BlobInfo(found["path"], found["size"], found["last_modified"])

    async def sweep(self, older: timedelta) -> int:  # noqa: ARG002 - unfinished uploads cannot be listed
        return 0

    async def close(self) -> None:
        """Connections end when they are idle."""

    async def _is_refused(self, key: str) -> bool:
        """Write an object twice; whether the second time was refused."""
        try:
            await obstore.put_async(self._store, key, b"roost", mode="create")
        except BaseError:  # some do not know the condition at all
            await obstore.put_async(self._store, key, b"roost")
            return False
        try:
            await obstore.put_async(self._store, key, b"roost", mode="create")
        except AlreadyExistsError:
            return True
        return False

    async def _range(self, key: str, offset: int, length: int) -> bytes:
        """Services do not answer for an empty range, and fail for one that begins behind the end."""
        try:
            if length:
                return bytes(await obstore.get_range_async(self._store, key, start=offset, length=length))
        except BaseError:
            if await _size(self._store, key) > offset:
                raise
            raise BlobNotFound from None
        if await _size(self._store, key) < offset:
            raise BlobNotFound
        return b""


class _ObjectWriter(BlobWriter):
    """Holds less than a part, and those on their way; a small object is one request."""

    def __init__(self, store: _Store, key: str, *, refuses: bool) -> None:
        self._store, self._key, self._refuses = store, key, refuses
        self._held = bytearray()
        self._finished = False
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._aborted = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._open()
        self._held += data
        while len(self._held) > PART:
            with memoryview(self._held) as held:
                part = bytes(held[:PART])
            del self._held[:PART]
            await self._give(part)

    async def commit(self) -> None:
        self._open()
        if self._sending is None and self._refuses:
            self._sending = asyncio.create_task(self._put("create"))
        else:
            await self._refuse_taken()
            if self._sending is None:
                self._sending = asyncio.create_task(self._put("overwrite"))
            else:
                await self._give(bytes(self._held))
                await self._give(None)
        await asyncio.shield(self._sending)  # cut off, it could leave parts
        self._finished = True

    async def abort(self) -> None:
        if self._finished:
            return
        self._finished = True
        self._held.clear()
        if self._sending is None:
            return
        self._aborted.set()
        await asyncio.wait({self._sending})
        if self._sending.exception() is None:  # it was all there already
            with suppress(BlobStoreFailed, BlobNotFound), _translated():
                await obstore.delete_async(self._store, self._key)

    def _open(self) -> None:
        if self._finished:
            raise BlobStoreFailed("The object is finished")

    async def _refuse_taken(self) -> None:
        """Where the backend does not look itself: it has no condition for objects in parts, or for none."""
        with _translated(), suppress(FileNotFoundError):
            await _size(self._store, self._key)
            raise BlobStoreFailed("The key is taken")

    async def _give(self, part: bytes | None) -> None:
        """Waits until there is room; what went wrong with former parts is raised here."""
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        giving = asyncio.create_task(self._parts.put(part))
        try:
            await asyncio.wait({giving, self._sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving.cancel()
        if self._sending.done():
            await self._sending

    async def _put(self, mode: Literal["create", "overwrite"]) -> None:
        with _translated(missing=BlobStoreFailed):
            await obstore.put_async(self._store, self._key, bytes(self._held), mode=mode, use_multipart=False)

    async def _send(self) -> None:
        with _translated(missing=BlobStoreFailed):
            await obstore.put_async(
                self._store, self._key, self._feed(), chunk_size=PART, max_concurrency=_PARTS_AT_ONCE
            )

    async def _feed(self) -> AsyncGenerator[bytes]:
        """The parts as they come. Failing makes the library take back what was sent."""
        aborted = asyncio.create_task(self._aborted.wait())
        getting: asyncio.Task[bytes | None] | None = None
        try:
            while not aborted.done():
                getting = asyncio.create_task(self._parts.get())
                await asyncio.wait({getting, aborted}, return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    break
                part = getting.result()
                if part is None:
                    return
                yield part
            raise BlobStoreFailed("The object was given up")
        finally:
            for waiting in (aborted, getting):
                if waiting is not None:
                    waiting.cancel()


async def _size(store: _Store, key: str) -> int:
    return (await obstore.head_async(store, key))["size"]


def _checked(key: str) -> str:
    if KEY.fullmatch(key) is None:
        raise BlobNotFound
    return key


@contextmanager
def _translated(missing: type[Problem] = BlobNotFound) -> Generator[None]:
    """Raises BlobFailed, and `missing` for what is not there: of a write, that is the bucket.

    What a service said is for the log: it names buckets and hosts.
    """
    try:
        yield
    except FileNotFoundError:
        raise missing from None
    except (BaseError, OSError, ValueError) as error:
        _log.warning("the storage backend failed", error=_first_line(error))
        raise BlobStoreFailed from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
