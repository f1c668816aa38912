"""`kill -9` of a whole server during uploads of every kind: forms, signed URLs, folders, CARs, parts, pins."""

from pathlib import Path

from tests.storage.killed import run_and_kill

ROUNDS = {"sqlite": 10, "postgresql": 5}


def test_killed_at_random_moments(quick_folder: Path, dialect: str, database_url: str) -> None:
    acknowledged, _ = run_and_kill("server_crash", quick_folder, ROUNDS[dialect], database_url)
    assert acknowledged
