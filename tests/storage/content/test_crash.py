"""`kill -9` at any moment loses nothing that was acknowledged, shows nothing that is half done, and leaks nothing."""

import subprocess
import sys
from pathlib import Path

ROUNDS = 31


def test_killed_at_random_moments(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.storage.crash", str(tmp_path), str(ROUNDS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    kept, gone = map(int, done.stdout.split())
    assert kept > 10
    assert gone > 0
