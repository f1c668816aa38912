"""Run programs that kill themselves at random moments."""

import secrets
import subprocess
import sys
from pathlib import Path


def run_and_kill(program: str, folder: Path, rounds: int, *more: str) -> tuple[int, int]:
    """Run the program; return the two numbers that it prints. A failure shows the seed, which repeats it."""
    seed = secrets.randbelow(1 << 32)
    argv = [sys.executable, "-m", f"tests.storage.{program}", str(folder), str(rounds), str(seed), *more]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    first, second = map(int, done.stdout.split())
    return first, second
