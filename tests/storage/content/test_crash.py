"""`kill -9` at any time loses nothing that was acknowledged, shows nothing unfinished, and leaks nothing."""

from pathlib import Path

import pytest

from tests.conformance import s3_server
from tests.conformance.s3_server import s3_address
from tests.storage.killed import run_and_kill

__all__ = ["s3_address"]
ROUNDS = 48
ROUNDS_OF_A_BUCKET = 9


def test_killed_at_random_moments(quick_folder: Path) -> None:
    kept, gone = run_and_kill("crash", quick_folder, ROUNDS)
    assert kept > 20
    assert gone > 0


def test_killed_while_objects_are_on_their_way(
    quick_folder: Path, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.use_bucket(monkeypatch, s3_address, "killed")
    kept, _ = run_and_kill("crash", quick_folder, ROUNDS_OF_A_BUCKET, bucket)
    assert kept > 5
