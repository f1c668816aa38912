"""Short runs of `make chaos` and `make chaos-fleet`, which are the long ones."""

import secrets
import subprocess
import sys

import pytest

from tests.chaos.runner import ACTIONS

pytestmark = [pytest.mark.container, pytest.mark.timeout(400)]
_LONG_RUN_ONLY = {"price", "vectorize", "sign_out", "chat", "command"}
_NAMES = [name for name in ACTIONS if name not in _LONG_RUN_ONLY]


def test_crashes_at_random_points_leave_one_of_two_states() -> None:
    """Interrupt operations once each, in a process of its own, because servers are forks of it."""
    argv = [sys.executable, "-m", "tests.chaos", "bwrap", str(len(_NAMES)), str(secrets.randbelow(1 << 32)), *_NAMES]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=390, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count(" killed during ") == len(_NAMES)


@pytest.mark.postgres
def test_three_servers_lose_nothing_while_they_are_killed_paused_and_cut_off() -> None:
    argv = [sys.executable, "-m", "tests.chaos.fleet_chaos", "20", "3", "0", str(secrets.randbelow(1 << 32))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=390, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(trouble in done.stdout for trouble in ("killed", "paused", "cut off"))
