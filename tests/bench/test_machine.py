"""The state of the machine beside a benchmark."""

import os
import resource
import subprocess
import sys
import time

import pytest

from bench.machine import MachineWatch

_WORK = "import time\nwhile time.process_time() < 0.6: sum(range(1000))"


def test_work_of_our_processes_is_told_from_other_work() -> None:
    """The same work counts as other work beside an idle process."""
    with subprocess.Popen(["sleep", "60"]) as idle:
        ours, theirs = MachineWatch(os.getpid()), MachineWatch(idle.pid)
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", _WORK], check=True)
        beside_us, beside_idle = ours.measure(), theirs.measure()
        after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
        idle.kill()
    used = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / elapsed
    assert beside_idle.other_cpus - beside_us.other_cpus == pytest.approx(used, abs=0.25)
    assert 0 <= beside_us.steal <= 100
    assert beside_us.load >= 0


def test_rows_that_are_measured_together_have_the_same_conditions() -> None:
    watch = MachineWatch(os.getpid())
    first = watch.measure()
    assert watch.measure() is first
