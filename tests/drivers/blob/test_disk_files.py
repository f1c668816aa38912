"""What is done with files: all of it or nothing, in the words that blob stores fail with."""

import asyncio
import fcntl
import mmap
import os
import tempfile
import threading
from pathlib import Path

import pytest

from roost.drivers.blob.contract import BlobNotFound, BlobStoreFailed
from roost.drivers.blob.disk_files import (
    open_in_thread,
    read_cached,
    read_exactly,
    run_in_thread,
    sync_folder,
    write_all,
    write_direct,
    write_vectors,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    return path


@pytest.mark.parametrize(("offset", "length", "found"), [(0, 10, b"0123456789"), (3, 4, b"3456"), (10, 0, b"")])
def test_cached_bytes_are_right_or_absent(file: Path, offset: int, length: int, found: bytes) -> None:
    assert read_cached(str(file), offset, length) in {found, None}


@pytest.mark.parametrize(("offset", "length"), [(0, 11), (8, 3), (10, 1), (99, 1)])
def test_partial_range_is_not_cached(file: Path, offset: int, length: int) -> None:
    assert read_cached(str(file), offset, length) is None


def test_missing_file_is_not_cached(tmp_path: Path) -> None:
    assert read_cached(str(tmp_path / "nothing"), 0, 1) is None
    assert read_cached(str(tmp_path), 0, 1) is None


def test_a_range_is_read_whole_or_missing(file: Path) -> None:
    with file.open("rb") as opened:
        assert read_exactly(opened.fileno(), 2, 5) == b"23456"
        with pytest.raises(BlobNotFound):
            read_exactly(opened.fileno(), 8, 3)


def test_all_is_written_when_the_system_takes_it_in_parts() -> None:
    read, write = os.pipe()
    os.set_blocking(write, True)
    try:
        write_all(write, bytearray(b"x" * 60_000))
        assert len(os.read(read, 70_000)) == 60_000
    finally:
        os.close(read)
        os.close(write)


async def test_system_errors_become_those_of_the_contract(tmp_path: Path) -> None:
    with pytest.raises(BlobNotFound):
        await run_in_thread((tmp_path / "nothing").read_bytes)
    with pytest.raises(BlobStoreFailed, match="not available"):
        await run_in_thread(tmp_path.read_bytes)
    assert await run_in_thread(lambda: 7) == 7


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "nothing")


async def test_file_opened_after_a_cancellation_is_closed(file: Path) -> None:
    began, goes_on = threading.Event(), threading.Event()
    numbers: list[int] = []

    def slow() -> int:
        began.set()
        assert goes_on.wait(20)
        numbers.append(os.open(file, os.O_RDONLY))
        return numbers[0]

    opening = asyncio.create_task(open_in_thread(slow))
    await asyncio.to_thread(began.wait, 20)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    goes_on.set()
    async with asyncio.timeout(20):
        while not numbers or Path(f"/proc/self/fd/{numbers[0]}").exists():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("there", ["/dev/shm", None], ids=["memory", "disk"])
def test_direct_writes_keep_all_bytes_in_order(tmp_path: Path, there: str | None) -> None:
    """Whole pages and others, from memory that a disk can take and from such that it cannot."""
    pages = memoryview(mmap.mmap(-1, 64 * 1024))
    pages[:] = os.urandom(len(pages))
    plain = memoryview(os.urandom(40_001))
    parts = [pages, pages[:4096], plain[1:4097], pages[:4095], plain, pages[:1], pages, plain[:0]]
    with tempfile.TemporaryFile(dir=there if there and os.access(there, os.W_OK) else tmp_path) as file:
        size = 0
        for part in parts:
            write_direct(file.fileno(), part, size)
            size += len(part)
        assert os.fstat(file.fileno()).st_size == size
        file.seek(0)
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        fcntl.fcntl(file, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        assert file.read() == b"".join(parts)


def test_failed_direct_write_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with path.open("rb") as file, pytest.raises(OSError, match="Bad file descriptor"):
        write_direct(file.fileno(), bytes(4096), 0)


@pytest.mark.parametrize("count", [1, 1024, 2500])
def test_parts_are_appended_in_their_order(tmp_path: Path, count: int) -> None:
    parts = [memoryview(b"%d," % number) for number in range(count)]
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"first:")
        write_vectors(file.fileno(), parts)
    assert (tmp_path / "file").read_bytes() == b"first:" + b"".join(parts)


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "writev", lambda file, parts: os.write(file, parts[0][:2]))
    with (tmp_path / "file").open("wb", buffering=0) as file:
        write_vectors(file.fileno(), [b"abc", b"def"])
    assert (tmp_path / "file").read_bytes() == b"abcdef"
