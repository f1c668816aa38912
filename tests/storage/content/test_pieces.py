"""Pieces: whole ones in their order, one worked on while the next is gathered, and never more than two."""

import asyncio

import pytest

from roost.storage.content.pieces import PIECE, Pieces, both


class Worker:
    """Keeps what it gets, when it may."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.may = asyncio.Event()
        self.began = 0

    async def work(self, piece: memoryview) -> None:
        self.began += 1
        await self.may.wait()
        self.got.append(bytes(piece))


async def test_what_comes_in_any_size_is_worked_on_in_whole_pieces() -> None:
    worker = Worker()
    worker.may.set()
    pieces = Pieces(worker.work)
    content = bytes(range(256)) * (PIECE // 256 * 3) + b"the rest"
    sizes = [1, PIECE - 1, PIECE, PIECE // 2, 7, len(content)]
    at = 0
    for size in sizes:
        await pieces.add(content[at : at + size])
        at += size
    await pieces.end()
    assert [len(piece) for piece in worker.got] == [PIECE, PIECE, PIECE, 8]
    assert b"".join(worker.got) == content


async def test_one_is_gathered_while_one_is_worked_on_and_no_third() -> None:
    worker = Worker()
    pieces = Pieces(worker.work)
    await pieces.add(b"a" * PIECE)
    await pieces.add(b"b" * (PIECE - 1))
    third = asyncio.create_task(pieces.add(b"b" + b"c" * PIECE))
    await asyncio.sleep(0)
    assert not third.done(), "the second piece has to wait for the first"
    worker.may.set()
    await third
    await pieces.end()
    assert worker.got == [b"a" * PIECE, b"b" * PIECE, b"c" * PIECE]


async def test_more_may_be_added_after_an_end() -> None:
    worker = Worker()
    worker.may.set()
    pieces = Pieces(worker.work)
    for word in (b"one", b"two"):
        await pieces.add(word)
        await pieces.end()
    await pieces.end()
    assert worker.got == [b"one", b"two"]


async def test_what_is_taken_is_not_worked_on() -> None:
    worker = Worker()
    worker.may.set()
    pieces = Pieces(worker.work)
    await pieces.add(b"small")
    assert pieces.take() == b"small"
    assert pieces.take() == b""
    await pieces.end()
    assert worker.got == []


@pytest.mark.parametrize("then", ["add", "end"])
async def test_work_that_fails_is_told_to_whoever_comes_next(then: str) -> None:
    async def fail(_: memoryview) -> None:
        raise OSError("full")

    pieces = Pieces(fail)
    await pieces.add(b"x" * PIECE)
    with pytest.raises(OSError, match="full"):
        await (pieces.end() if then == "end" else pieces.add(b"y" * PIECE))


async def test_work_that_fails_after_it_was_given_up_disturbs_nobody() -> None:
    async def fail(_: memoryview) -> None:
        raise OSError("full")

    pieces = Pieces(fail)
    await pieces.add(b"x" * PIECE)
    await pieces.close()
    await pieces.close()


async def test_a_caller_who_is_cancelled_leaves_work_that_close_waits_for() -> None:
    worker = Worker()
    pieces = Pieces(worker.work)
    await pieces.add(b"x" * PIECE)
    waiting = asyncio.create_task(pieces.end())
    while not worker.began:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    closing = asyncio.create_task(pieces.close())
    await asyncio.sleep(0)
    assert not closing.done()
    worker.may.set()
    await closing
    assert worker.got == [b"x" * PIECE]


async def test_of_two_the_one_that_fails_waits_for_the_other() -> None:
    worker = Worker()

    async def fail() -> None:
        raise OSError("full")

    two = asyncio.create_task(both(fail(), worker.work(memoryview(b"other"))))
    for _ in range(10):
        await asyncio.sleep(0)
    assert worker.began
    assert not two.done()
    worker.may.set()
    with pytest.raises(OSError, match="full"):
        await two
    assert worker.got == [b"other"]
