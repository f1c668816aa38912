"""A short run of `make chaos`, which is the long one."""

import subprocess
import sys

import pytest

from tests.chaos.runner import ACTIONS

pytestmark = [pytest.mark.container, pytest.mark.timeout(400)]


def test_crashes_at_random_points_leave_one_of_two_states() -> None:
    """Interrupt each operation once, in a process of its own, because servers are forks of it."""
    argv = [sys.executable, "-m", "tests.chaos", str(len(ACTIONS))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=390, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count(" killed during ") == len(ACTIONS)
