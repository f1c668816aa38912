"""Runs benchmarks one after the other, each in a process of its own that has a deadline.

A benchmark that fails, hangs or dies is a failed row; its earlier rows stay, and the next benchmark runs. Whatever a
benchmark started ends with it.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path

from bench.figures import write_page
from bench.machine import MachineWatch
from bench.process_tree import adopt_orphans, end_descendants, reap_orphans
from bench.report import Report
from bench.row import Row

_ROOT = Path(__file__).parent.parent
_POLL_SECONDS = 0.1
_CLEANUP_SECONDS = 120.0
_INTERRUPTED = 130  # as a shell shows it


@dataclass(frozen=True)
class Benchmark:
    """Function that yields rows, `MODULE:FUNCTION`, and the seconds after which it has failed."""

    target: str
    deadline: float = 900
    cleanup: float = _CLEANUP_SECONDS


def run_benchmarks(
    names: Sequence[str], benchmarks: Mapping[str, Benchmark], results: Path, page: Path | None = None
) -> int:
    """Run benchmarks, print and write their rows as they come, at last the page; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    adopt_orphans()
    report = Report(results)
    try:
        for name in names:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            _run_benchmark(name, benchmarks[name], report)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        report.finish()
    if page:
        write_page(report.results, {name: benchmarks[name].target for name in names}, page)
    return 1 if report.failures else 0


def _run_benchmark(name: str, benchmark: Benchmark, report: Report) -> None:
    """Report the rows of a benchmark, and its failure."""
    watch, reasons = MachineWatch(os.getpid()), list[str]()
    interrupted = False

    def add_row(row: Row) -> None:
        report.add_row(name, row, watch.measure())

    with _temporary_folder(reasons) as folder:
        worker = _Worker(benchmark.target, folder)
        try:
            reasons += worker.run(benchmark, add_row)
        except KeyboardInterrupt:
            interrupted = True
            reasons += ["interrupted", *worker.interrupt(benchmark.cleanup, add_row)]
        finally:
            reasons += worker.end()
    if reasons:
        report.add_failure(name, "; then ".join(reasons), watch.measure())
    if interrupted:
        raise KeyboardInterrupt


@contextmanager
def _temporary_folder(reasons: list[str]) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="roost-bench-"))
    folder.chmod(0o755)  # other users run the containers
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            reasons.append(f"its folder was not removed: {error}")


class _Worker:
    """The process of a benchmark, in a session of its own, so that Ctrl-C reaches the harness only."""

    def __init__(self, target: str, folder: Path) -> None:
        self._connection, theirs = Pipe()
        descriptor = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", target, str(folder), str(descriptor)],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=[descriptor],
            start_new_session=True,
        )
        theirs.close()

    def run(self, benchmark: Benchmark, add_row: Callable[[Row], None]) -> Sequence[str]:
        """Pass on all rows; return the reasons of a failure, the first one first."""
        try:
            return self._follow(benchmark.deadline, add_row)
        except TimeoutError:
            return [f"not finished within {benchmark.deadline:g} s", *self.interrupt(benchmark.cleanup, add_row)]

    def interrupt(self, seconds: float, add_row: Callable[[Row], None]) -> Sequence[str]:
        """Interrupt the benchmark and let it clean up; return where it was and what failed."""
        self._process.send_signal(signal.SIGINT)
        try:
            return self._follow(seconds, add_row)
        except TimeoutError:
            return [f"its clean-up not finished within {seconds:g} s"]

    def end(self) -> Sequence[str]:
        """End what is left of the benchmark; return the reason if something stays."""
        self._connection.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        try:
            left = end_descendants(os.getpid())
        except TimeoutError as error:
            return [str(error)]
        if left:
            print(f"ended {left} processes that were left", file=sys.stderr, flush=True)
        return []

    def _follow(self, seconds: float, add_row: Callable[[Row], None]) -> Sequence[str]:
        deadline, reasons = time.monotonic() + seconds, list[str]()
        while (message := self._receive(deadline)) is not None:
            if isinstance(message, str):
                reasons.append(message)
            else:
                add_row(message)
                with suppress(OSError):  # it has ended
                    self._connection.send(None)
        code = self._process.returncode
        return reasons or ([f"its process ended with exit code {code}"] if code else [])

    def _receive(self, deadline: float) -> Row | str | None:
        """Return the next message, or None once the process has ended. Raises TimeoutError."""
        while True:
            has_ended = self._process.poll() is not None
            if _is_readable(self._connection.poll, 0 if has_ended else _POLL_SECONDS):
                with suppress(EOFError, OSError):
                    return self._connection.recv()
            if has_ended:
                return None
            reap_orphans(self._process.pid)
            if time.monotonic() > deadline:
                raise TimeoutError


def _is_readable(poll: Callable[[float], bool], seconds: float) -> bool:
    try:
        return poll(seconds)
    except OSError:
        time.sleep(seconds)  # closed by the other end, whose process still runs
        return False
