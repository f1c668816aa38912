"""Run programs that kill themselves at random moments."""

import secrets
import subprocess
import sys
from pathlib import Path

import pytest


def run_and_kill(program: str, folder: Path, rounds: int, *more: str) -> tuple[int, int]:
    """Run the program; return the two numbers that it prints. A failure shows the seed, which repeats it."""
    seed = secrets.randbelow(1 << 32)
    argv = [sys.executable, "-m", f"tests.storage.{program}", str(folder), str(rounds), str(seed), *more]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
    except subprocess.TimeoutExpired as expired:
        pytest.fail(f"seed {seed}: not done in {expired.timeout:.0f} seconds\n{expired.stderr}")
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    print(f"seed {seed}")  # pytest shows it if the test fails later
    first, second = map(int, done.stdout.splitlines()[-1].split())  # the lines before it are a log
    return first, second
