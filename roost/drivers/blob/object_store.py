"""Objects in S3, Google Cloud Storage or Azure, through obstore, under a prefix of a bucket.

The URL names bucket and prefix (`s3://bucket/prefix`, `gs://`, `az://`); endpoint, region and credentials come from the
provider's own variables (`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`). Objects larger
than one part are uploaded in parts while they are written. The library cannot list incomplete uploads, so the bucket
needs a lifecycle rule that removes them.
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
from roost.core.outage import Outage
from roost.core.problem import DependencyAway, Problem
from roost.drivers.blob.contract import (
    KEY_PATTERN,
    BlobInfo,
    BlobNotFound,
    BlobStore,
    BlobStoreFailed,
    BlobWriter,
    check_key,
)

PART_BYTES = 8 * 1024**2
"""Services accept 10,000 parts, so the largest object has 78 GiB."""
_MAX_CONCURRENT_PARTS = 3
_WINDOW_BYTES = 4 * 1024**2
_RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_OVERWRITE_WARNING = "the backend replaces existing objects; every key is looked up before it is written"

_Store = S3Store | GCSStore | AzureStore
_log = log.get_logger("blobs")


class BucketUnavailable(BlobStoreFailed, DependencyAway):
    """The service does not answer, or rejects the operation; its outage is in the log."""


class ObjectStore(BlobStore):
    name: ClassVar[str] = "objects"

    def __init__(self, url: str) -> None:
        """Raise BlobStoreFailed for a malformed URL."""
        self._url = url
        self._outage = Outage("bucket")
        self._is_conditional = True  # refuses to replace an object; `probe` finds out
        try:
            self._store = cast("_Store", from_url(url, retry_config=_RETRIES))
        except (BaseError, ValueError) as error:
            raise BlobStoreFailed(f"{url!r} is not a valid object store URL: {_first_line(error)}") from None

    async def probe(self) -> str | None:
        key = ids.random_bytes(16).hex()
        try:
            self._is_conditional = await self._test_conditional_put(key)
            found = bytes(await obstore.get_range_async(self._store, key, start=0, length=5))
            await obstore.delete_async(self._store, key)
        except Exception as error:  # noqa: BLE001 - with some endpoints the library panics, with its own error class
            raise BlobStoreFailed(f"Objects cannot be stored in {self._url}: {_first_line(error)}") from None
        if found != b"roost":
            raise BlobStoreFailed(f"{self._url} returns other bytes than were written")
        return None if self._is_conditional else _OVERWRITE_WARNING

    async def create(self, key: str) -> BlobWriter:
        return _ObjectWriter(self._store, check_key(key), self._outage, is_conditional=self._is_conditional)

    async def read(self, key: str, offset: int, length: int) -> bytes:
        with _translate_errors(self._outage):
            found = await self._read_range(check_key(key), offset, length)
        if len(found) != length:
            raise BlobNotFound
        return found

    async def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        """Read one window per request, so that a slow reader does not hold a connection open."""
        window = max(1, _WINDOW_BYTES // piece) * piece
        end = offset + length
        for at in range(offset, end, window):
            found = memoryview(await self.read(key, at, min(window, end - at)))
            for begin in range(0, len(found), piece):
                yield bytes(found[begin : begin + piece])

    async def delete(self, key: str) -> None:
        with _translate_errors(self._outage), suppress(FileNotFoundError):
            await obstore.delete_async(self._store, check_key(key))

    async def list(self) -> AsyncIterator[BlobInfo]:
        with _translate_errors(self._outage):
            async for page in obstore.list(self._store):  # pyright: ignore[reportUnknownMemberType] - its Arrow overloads
                for found in page:
                    if KEY_PATTERN.fullmatch(found["path"]):
                        yield BlobInfo(found["path"], found["size"], found["last_modified"])

    async def sweep(self, older: timedelta) -> int:  # noqa: ARG002 - unfinished uploads cannot be listed
        return 0

    async def close(self) -> None:
        """Do nothing: idle connections close by themselves."""

    async def _test_conditional_put(self, key: str) -> bool:
        """Write an object twice and return whether the second write was refused."""
        try:
            await obstore.put_async(self._store, key, b"roost", mode="create")
        except BaseError:  # some backends reject the condition
            await obstore.put_async(self._store, key, b"roost")
            return False
        try:
            await obstore.put_async(self._store, key, b"roost", mode="create")
        except AlreadyExistsError:
            return True
        return False

    async def _read_range(self, key: str, offset: int, length: int) -> bytes:
        """Read a range; services reject an empty range and one that starts after the end."""
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
    """Writer that buffers at most one part and the parts in flight; a small object is one request."""

    def __init__(self, store: _Store, key: str, outage: Outage, *, is_conditional: bool) -> None:
        self._store, self._key, self._outage, self._is_conditional = store, key, outage, is_conditional
        self._buffer = bytearray()
        self._finished = False
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._aborted = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._check_open()
        self._buffer += data
        while len(self._buffer) > PART_BYTES:
            with memoryview(self._buffer) as held:
                part = bytes(held[:PART_BYTES])
            del self._buffer[:PART_BYTES]
            await self._queue_part(part)

    async def commit(self) -> None:
        self._check_open()
        if self._sending is None and self._is_conditional:
            self._sending = asyncio.create_task(self._put("create"))
        else:  # an upload in parts has no condition
            await self._check_key_is_free()
            if self._sending is None:
                self._sending = asyncio.create_task(self._put("overwrite"))
            else:
                await self._queue_part(bytes(self._buffer))
                await self._queue_part(None)
        await asyncio.shield(self._sending)  # cancelling it could leave parts
        self._finished = True

    async def abort(self) -> None:
        if self._finished:
            return
        self._finished = True
        self._buffer.clear()
        if self._sending is None:
            return
        self._aborted.set()
        await asyncio.wait({self._sending})
        if self._sending.exception() is None:  # the upload was complete
            with suppress(BlobStoreFailed, BlobNotFound), _translate_errors(self._outage):
                await obstore.delete_async(self._store, self._key)

    def _check_open(self) -> None:
        if self._finished:
            raise BlobStoreFailed("The object is already finished")

    async def _check_key_is_free(self) -> None:
        """Raise BlobStoreFailed if the key exists, where the backend has no conditional write."""
        with _translate_errors(self._outage), suppress(FileNotFoundError):
            await _size(self._store, self._key)
            raise BlobStoreFailed("The key exists already")

    async def _queue_part(self, part: bytes | None) -> None:
        """Wait until the queue accepts the part; raises the errors of earlier parts."""
        if self._sending is None:
            self._sending = asyncio.create_task(self._upload_parts())
        putting = asyncio.create_task(self._parts.put(part))
        try:
            await asyncio.wait({putting, self._sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            putting.cancel()
        if self._sending.done():
            await self._sending

    async def _put(self, mode: Literal["create", "overwrite"]) -> None:
        with _translate_errors(self._outage, missing=BlobStoreFailed):
            await obstore.put_async(self._store, self._key, bytes(self._buffer), mode=mode, use_multipart=False)

    async def _upload_parts(self) -> None:
        with _translate_errors(self._outage, missing=BlobStoreFailed):
            await obstore.put_async(
                self._store,
                self._key,
                self._part_stream(),
                chunk_size=PART_BYTES,
                max_concurrency=_MAX_CONCURRENT_PARTS,
            )

    async def _part_stream(self) -> AsyncGenerator[bytes]:
        """Yield the parts as they are written. An error makes the library abort the upload."""
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
            raise BlobStoreFailed("The object was aborted")
        finally:
            for waiting in (aborted, getting):
                if waiting is not None:
                    waiting.cancel()


async def _size(store: _Store, key: str) -> int:
    return (await obstore.head_async(store, key))["size"]


@contextmanager
def _translate_errors(outage: Outage, missing: type[Problem] = BlobNotFound) -> Generator[None]:
    """Raise BucketUnavailable, or `missing` for a missing object; for a write the bucket is missing.

    The service's own message goes only to the log, because it names buckets and hosts.
    """
    try:
        yield
    except FileNotFoundError:
        raise missing from None
    except (BaseError, OSError, ValueError) as error:
        outage.report(_first_line(error))
        raise BucketUnavailable from None
    outage.end()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
