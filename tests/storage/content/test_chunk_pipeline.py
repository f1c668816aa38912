"""Chunks arrive whole and in order, are hashed and written in parallel, and few are in memory at a time."""

import asyncio
import gc
import threading
from pathlib import Path

import pytest

from roost.storage.content.chunk_pipeline import PIECE_SIZE, ChunkPipeline


class FakeWorker:
    """Hashes and writes chunks when the test allows it."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.got: list[bytes] = []
        self.may_look, self.may_keep = threading.Event(), asyncio.Event()
        self.pieces = ChunkPipeline(self.look, self.keep)

    @classmethod
    def free(cls) -> "FakeWorker":
        self = cls()
        self.may_look.set()
        self.may_keep.set()
        return self

    def look(self, piece: memoryview) -> None:
        assert self.may_look.wait(20)
        self.seen.append(bytes(piece))

    async def keep(self, piece: memoryview) -> None:
        await self.may_keep.wait()
        self.got.append(bytes(piece))


async def _soon() -> None:
    """Let everything that is ready in the loop run."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_input_of_any_size_is_worked_on_in_whole_pieces() -> None:
    worker = FakeWorker.free()
    content = bytes(range(256)) * (PIECE_SIZE // 256 * 7) + b"the rest"
    sizes = [1, PIECE_SIZE - 1, PIECE_SIZE, PIECE_SIZE // 2, 7, len(content)]
    at = 0
    for size in sizes:
        await worker.pieces.add(content[at : at + size])
        at += size
    await worker.pieces.flush()
    assert [len(piece) for piece in worker.got] == [PIECE_SIZE] * 7 + [8]
    assert b"".join(worker.got) == content
    assert worker.seen == worker.got


@pytest.mark.parametrize("slow", ["look", "keep"])
async def test_two_are_worked_on_while_one_is_gathered_and_no_fourth(slow: str) -> None:
    worker = FakeWorker.free()
    (worker.may_look if slow == "look" else worker.may_keep).clear()
    await worker.pieces.add(b"a" * PIECE_SIZE + b"b" * PIECE_SIZE + b"c" * (PIECE_SIZE - 1))
    more = asyncio.create_task(worker.pieces.add(b"c" + b"d" * PIECE_SIZE))
    await _soon()
    assert not more.done(), "the third piece has to wait for the first"
    (worker.may_look if slow == "look" else worker.may_keep).set()
    await more
    await worker.pieces.flush()
    assert worker.got == worker.seen == [letter * PIECE_SIZE for letter in (b"a", b"b", b"c", b"d")]


async def test_more_may_be_added_after_an_end() -> None:
    worker = FakeWorker.free()
    for word in (b"one", b"two"):
        await worker.pieces.add(word)
        await worker.pieces.flush()
    await worker.pieces.flush()
    assert worker.got == worker.seen == [b"one", b"two"]


async def test_taken_bytes_are_not_worked_on() -> None:
    worker = FakeWorker.free()
    await worker.pieces.add(b"small")
    assert worker.pieces.take_buffered() == b"small"
    assert worker.pieces.take_buffered() == b""
    await worker.pieces.flush()
    assert worker.got == worker.seen == []


async def _fails(_: memoryview) -> None:
    raise OSError("full")


def _stumbles(_: memoryview) -> None:
    raise OSError("no")


@pytest.mark.parametrize("which", ["look", "keep"])
@pytest.mark.parametrize("then", ["add", "end"])
async def test_a_failure_is_raised_by_the_next_call_and_ends_all_other_work(which: str, then: str) -> None:
    worker = FakeWorker.free()
    pieces = ChunkPipeline(_stumbles, worker.keep) if which == "look" else ChunkPipeline(worker.look, _fails)
    await pieces.add(b"x" * PIECE_SIZE)
    await pieces.close()
    assert pieces.failed
    worker.seen.clear()
    worker.got.clear()
    for _ in range(2):
        with pytest.raises(OSError, match="no" if which == "look" else "full"):
            await (pieces.flush() if then == "end" else pieces.add(b"y" * PIECE_SIZE * 3))
    await pieces.close()
    assert worker.seen == worker.got == []


async def test_work_that_fails_after_it_was_given_up_disturbs_nobody() -> None:
    pieces = ChunkPipeline(_stumbles, _fails)
    await pieces.add(b"x" * PIECE_SIZE)
    await pieces.close()
    await pieces.close()


async def test_a_caller_who_is_cancelled_leaves_work_that_close_waits_for() -> None:
    worker = FakeWorker.free()
    worker.may_keep.clear()
    await worker.pieces.add(b"x" * PIECE_SIZE)
    waiting = asyncio.create_task(worker.pieces.flush())
    await _soon()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    closing = asyncio.create_task(worker.pieces.close())
    await _soon()
    assert not closing.done()
    worker.may_keep.set()
    await closing
    assert worker.got == [b"x" * PIECE_SIZE]


async def test_memory_is_used_again_only_when_both_have_returned() -> None:
    """One of them failed; the other one's buffer must not change while it works."""
    worker = FakeWorker()
    pieces = ChunkPipeline(worker.look, _fails)
    await pieces.add(b"x" * PIECE_SIZE + b"y" * PIECE_SIZE)
    more = asyncio.create_task(pieces.add(b"z" * PIECE_SIZE))
    await _soon()
    assert not more.done()
    worker.may_look.set()
    with pytest.raises(OSError, match="full"):
        await more
    await pieces.close()
    assert worker.seen[0] == b"x" * PIECE_SIZE


async def test_memory_is_let_go_when_all_is_over() -> None:
    """At once, without a garbage collection: workers and pipeline may refer to each other."""
    gc.collect()  # garbage of other tests
    before = _mapped()
    worker = FakeWorker.free()
    await worker.pieces.add(b"x" * (PIECE_SIZE + 1))
    await worker.pieces.flush()
    assert _mapped() - before == 3 * PIECE_SIZE
    await worker.pieces.close()
    assert _mapped() == before
    await worker.pieces.close()


def _mapped() -> int:
    """Return the bytes of anonymous shared memory mappings."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/zero" in line]
    return sum(int(end, 16) - int(begin, 16) for begin, _, end in (line[0].partition("-") for line in lines))
