"""Programs that kill what they test at random moments, run for a test."""

import secrets
import subprocess
import sys
from pathlib import Path


def killed(program: str, folder: Path, rounds: int, *more: str) -> tuple[int, int]:
    """The two numbers that it says when all was as it has to be. A failure tells the seed, which runs it again."""
    seed = secrets.randbelow(1 << 32)
    argv = [sys.executable, "-m", f"tests.storage.{program}", str(folder), str(rounds), str(seed), *more]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    first, second = map(int, done.stdout.split())
    return first, second
