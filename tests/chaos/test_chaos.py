"""A short run of `make chaos`, which is the long one."""

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
