"""`kill -9` at any moment of an upload in parts loses nothing that was acknowledged, and it goes on from there."""

import subprocess
import sys
from pathlib import Path

ROUNDS = 22


def test_killed_at_random_moments(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.storage.tus_crash", str(tmp_path), str(ROUNDS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    files, resumed = map(int, done.stdout.split())
    assert files > 5
    assert resumed > 5
