"""The key-encryption key: made once, kept private, never guessed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost.config import BadSettings, load
from roost.core.seal import Unsealable
from roost.keyring import sealer


def settings(folder: Path, **environment: str):
    return load({"ROOST_DATA": str(folder), **environment})


def test_a_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    sealed = sealer(settings(tmp_path)).seal(b"value", "here")
    path = settings(tmp_path).kek_file
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert sealer(settings(tmp_path)).open(sealed, "here").reveal() == b"value"
    assert sorted(path.parent.iterdir()) == [path]


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = {key.key_id for key in pool.map(lambda _: sealer(settings(tmp_path)), range(8))}
    assert len(made) == 1


def test_a_configured_key_wins_and_does_not_open_what_another_sealed(tmp_path: Path) -> None:
    sealed = sealer(settings(tmp_path)).seal(b"value", "here")
    configured = sealer(settings(tmp_path, ROOST_KEK="cd" * 32))
    with pytest.raises(Unsealable):
        configured.open(sealed, "here")


@pytest.mark.parametrize("content", ["", "nonsense", "ab" * 31])
def test_a_damaged_key_file_stops_the_server(tmp_path: Path, content: str) -> None:
    path = settings(tmp_path).kek_file
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(BadSettings, match="key-encryption key"):
        sealer(settings(tmp_path))
