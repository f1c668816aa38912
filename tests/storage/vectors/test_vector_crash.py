"""`kill -9` while files are vectorized and their vectors deleted: another process finishes, nothing is left."""

from pathlib import Path

from tests.storage.killed import run_and_kill

ROUNDS = {"sqlite": 6, "postgresql": 3}


def test_killed_at_random_moments(quick_folder: Path, dialect: str, database_url: str) -> None:
    run_and_kill("vectors.vector_crash", quick_folder, ROUNDS[dialect], database_url)
