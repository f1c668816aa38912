"""Benchmarks that behave well or badly, and the program that runs them: FOLDER NAME..."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Benchmark, run_benchmarks
from bench.row import Row

_SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def good(_folder: Path) -> Iterator[Row]:
    yield Row("first", [3.0, 1.0, 2.0], "ms", "peer", [1.0, 1.0, 1.0], "<= 4 x")
    yield Row("second", 7.0, "MB", goal="<= 5 MB")


async def waits(_folder: Path) -> AsyncGenerator[Row]:
    """Yield rows from an event loop, whose work goes on between them."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    task = asyncio.create_task(tick())
    for name in ("first", "second"):
        before = ticks
        await asyncio.sleep(0.2)
        yield Row(name, ticks - before, "", goal="> 0")
    task.cancel()


def fails_late(_folder: Path) -> Iterator[Row]:
    yield Row("before the failure", 1.0, "ms")
    raise ValueError("the measured program is gone")


@contextmanager
def _bad_clean_up() -> Iterator[None]:
    try:
        yield
    finally:
        raise OSError("the server did not stop")


def fails_twice(_folder: Path) -> Iterator[Row]:
    with _bad_clean_up():
        yield Row("before both failures", 1.0, "ms")
        raise ValueError("the original cause")


def dies(_folder: Path) -> Iterator[Row]:
    yield Row("before the death", 1.0, "ms")
    os._exit(9)


def hangs(_folder: Path) -> Iterator[Row]:
    """Start a process that outlives its parent, and never end."""
    yield Row("before the hang", 1.0, "ms")
    try:
        _start_orphan()
        time.sleep(600)
    finally:
        Path(os.environ["SAMPLE_FOLDER"], "cleaned-up").touch()


def hangs_for_ever(_folder: Path) -> Iterator[Row]:
    yield Row("before the hang", 1.0, "ms")
    _start_orphan()
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            continue


def leaves(_folder: Path) -> Iterator[Row]:
    _start_orphan()
    yield Row("beside a process that stays", 1.0, "ms")


def _start_orphan() -> None:
    """Start a process in a session of its own, whose parent ends at once, and write down its pid."""
    start = (
        f"import subprocess; print(subprocess.Popen({_SLEEP!r}, start_new_session=True, stdout=subprocess.DEVNULL).pid)"
    )
    pid = subprocess.run([sys.executable, "-c", start], stdout=subprocess.PIPE, check=True).stdout
    target = Path(os.environ["SAMPLE_FOLDER"], "orphan")
    target.with_suffix(".tmp").write_bytes(pid)
    target.with_suffix(".tmp").rename(target)


SAMPLES = {
    function.__name__: Benchmark(f"tests.bench.samples:{function.__name__}")
    for function in (good, waits, fails_late, fails_twice, dies, hangs, leaves)
} | {
    "times_out": Benchmark("tests.bench.samples:hangs", deadline=2),
    "stays_hung": Benchmark("tests.bench.samples:hangs_for_ever", deadline=2, cleanup=1),
    "is_missing": Benchmark("tests.bench.samples:is_missing"),
}

if __name__ == "__main__":
    sys.exit(run_benchmarks(sys.argv[2:], SAMPLES, Path(sys.argv[1], "results.json")))
