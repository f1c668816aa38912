"""Workers of a program in sandboxes: few, reused, replaced, ended when they are idle."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.sandbox.contract import SandboxProcess, SandboxProgram
from roost.drivers.sandbox.worker_pool import WorkerPool, WorkersBusy, find_packages, read_answer
from tests.conformance.runtimes import until


class Worker:
    def __init__(self, pid: int, *, stays: bool = False) -> None:
        self.pid = pid
        self.alive = True
        self._stays = stays

    def is_alive(self) -> bool:
        return self.alive

    async def kill(self) -> None:
        if self._stays:
            raise RuntimeFailed("The sandbox does not end")
        self.alive = False


class CountingSandbox:
    def __init__(self, *, stays: bool = False) -> None:
        self.started: list[Worker] = []
        self._stays = stays

    async def start(self, program: SandboxProgram) -> Any:
        self.started.append(Worker(len(self.started), stays=self._stays))
        return self.started[-1]


def make_pool(sandbox: Any, **options: Any) -> WorkerPool:
    return WorkerPool(sandbox, SandboxProgram(Path("worker.py")), **{"processes": 2, "max_waiting": 8, **options})


async def pid_of(worker: SandboxProcess) -> int:
    await asyncio.sleep(0)
    return worker.pid


async def fail(_: SandboxProcess) -> None:
    raise ValueError("no answer")


async def test_a_worker_is_reused_until_an_exchange_fails() -> None:
    sandbox = CountingSandbox()
    pool = make_pool(sandbox)
    assert [await pool.request(pid_of) for _ in range(3)] == [0, 0, 0]
    with pytest.raises(ValueError, match="no answer"):
        await pool.request(fail)
    assert not sandbox.started[0].alive
    assert await pool.request(pid_of) == 1


async def test_a_worker_of_a_cancelled_exchange_is_ended() -> None:
    sandbox = CountingSandbox()
    pool = make_pool(sandbox)

    async def hang(_: SandboxProcess) -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(pool.request(hang))
    await until(lambda: sandbox.started)
    task.cancel()
    await asyncio.wait({task})
    assert not sandbox.started[0].alive


async def test_a_dead_worker_is_not_used() -> None:
    sandbox = CountingSandbox()
    pool = make_pool(sandbox)
    await pool.request(pid_of)
    sandbox.started[0].alive = False
    assert await pool.request(pid_of) == 1


async def test_requests_wait_for_a_few_workers_in_their_order() -> None:
    sandbox = CountingSandbox()
    pool = make_pool(sandbox)
    order: list[int] = []

    async def take_turn(number: int) -> None:
        async def exchange(worker: SandboxProcess) -> None:
            order.append(number)
            await pid_of(worker)

        await pool.request(exchange)

    await asyncio.gather(*(take_turn(number) for number in range(8)))
    assert order == list(range(8))
    assert len(sandbox.started) == 2


async def test_too_many_requests_are_refused() -> None:
    pool = make_pool(CountingSandbox(), max_waiting=3)
    results = await asyncio.gather(*(pool.request(pid_of) for _ in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [int, int, int, WorkersBusy, WorkersBusy]
    assert await pool.request(pid_of) in (0, 1)


async def test_idle_workers_end() -> None:
    sandbox = CountingSandbox()
    pool = make_pool(sandbox, idle_seconds=0.02)
    await asyncio.gather(pool.request(pid_of), pool.request(pid_of))
    await until(lambda: not any(worker.alive for worker in sandbox.started))
    assert not pool.idle
    assert await pool.request(pid_of) == 2
    await pool.close()
    assert not sandbox.started[2].alive


async def test_close_survives_a_worker_that_does_not_end(capsys: pytest.CaptureFixture[str]) -> None:
    pool = make_pool(CountingSandbox(stays=True), idle_seconds=60)
    await asyncio.gather(pool.request(pid_of), pool.request(pid_of))
    await pool.close()
    await pool.close()
    assert not pool.idle


@pytest.mark.parametrize(
    ("sent", "found"),
    [(b"3\nabcrest", b"abc"), (b"0\n", b""), (b"11\n" + b"x" * 11, None), (b"-1\n", None), (b"x\n", None)],
)
async def test_an_answer_has_a_size_within_its_limit(sent: bytes, found: bytes | None) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(sent)
    reader.feed_eof()
    worker: Any = type("Peer", (), {"reader": reader})()
    if found is None:
        with pytest.raises(ValueError):
            await read_answer(worker, 10)
    else:
        assert await read_answer(worker, 10) == found


def test_packages_are_found_without_an_import() -> None:
    found = find_packages("PIL", "typing_extensions", libraries="pillow.libs")
    assert set(found) == {"PIL", "typing_extensions.py", "pillow.libs"}
    assert (found["PIL"] / "__init__.py").is_file()
    assert found["typing_extensions.py"].is_file()
