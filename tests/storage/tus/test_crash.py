"""`kill -9` at any moment of an upload in parts loses nothing acknowledged; the upload continues."""

from pathlib import Path

from tests.storage.killed import killed

ROUNDS = 30


def test_killed_at_random_moments(quick_folder: Path) -> None:
    files, resumed = killed("tus_crash", quick_folder, ROUNDS)
    assert files > 5
    assert resumed > 5
