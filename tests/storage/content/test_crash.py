"""`kill -9` at any moment loses nothing that was acknowledged, shows nothing that is half done, and leaks nothing."""

from pathlib import Path

from tests.storage.killed import killed

ROUNDS = 60


def test_killed_at_random_moments(quick_folder: Path) -> None:
    kept, gone = killed("crash", quick_folder, ROUNDS)
    assert kept > 20
    assert gone > 0
