"""`kill -9` at any moment of an upload in parts loses nothing acknowledged; the upload continues."""

from pathlib import Path

from tests.storage.killed import run_and_kill

ROUNDS = 30


def test_killed_at_random_moments(quick_folder: Path) -> None:
    files, resumed = run_and_kill("tus_crash", quick_folder, ROUNDS)
    assert files > 5
    assert resumed > 5
