"""A data folder knows its database, blob store and runtime, so that a shell without the settings opens no other one."""

import subprocess
from pathlib import Path

import pytest

from roost import app, config
from roost.app.data_folder import record_stores
from roost.app.doctor import run_checks
from roost.settings import BadSettings, Settings
from tests.journeys.server_process import ROOST

HIDDEN = "open-sesame"


def settings(folder: Path, **variables: str) -> Settings:
    return config.load_settings({"ROOST_DATA": str(folder), **variables})


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_shell_without_the_settings_opens_no_other_database(tmp_path: Path, database_url: str) -> None:
    folder = tmp_path / "data"
    for _ in range(2):
        app.open_database(settings(folder, ROOST_DATABASE_URL=database_url)).close()
    for command in (["up", "--no-first-agent", "--port", "0"], ["keys", "list"], ["hosts", "list"], ["scrub"]):
        argv = [*ROOST, *command, "--data", str(folder)]
        refused = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == 2, refused.stdout + refused.stderr
        assert "belongs to the database postgresql://" in refused.stderr
        assert "but the settings name its own SQLite database. Set ROOST_DATABASE_URL" in refused.stderr
    assert not (folder / "roost.db").exists()
    (row,) = [row for row in run_checks(settings(folder)) if row["part"] == "database"]
    assert (row["status"], "belongs to the database postgresql://" in row["detail"]) == ("fail", True)


def test_another_bucket_and_another_database_are_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    app.open_database(settings(folder)).close()
    with pytest.raises(
        BadSettings, match=r"the folder blobs, but the settings name the bucket s3://b/p\. Unset ROOST_BLOBS"
    ):
        app.open_database(settings(folder, ROOST_BLOBS="s3://b/p"))
    other = f"postgresql://someone:{HIDDEN}@db.example:5433/roost?sslmode=require"
    with pytest.raises(BadSettings, match=r"settings name the database postgresql://db\.example:5433/roost"):
        app.open_database(settings(folder, ROOST_DATABASE_URL=other))
    (folder / "stores.json").unlink()
    app.open_database(settings(folder, ROOST_BLOBS="s3://b/p")).close()


def test_another_runtime_is_refused_because_it_has_other_files(tmp_path: Path) -> None:
    app.open_database(settings(tmp_path)).close()
    with pytest.raises(
        BadSettings, match=r"belongs to the runtime bwrap, but .* the runtime docker\. Unset ROOST_RUNTIME"
    ):
        app.open_database(settings(tmp_path, ROOST_RUNTIME="docker"))


def test_the_two_runtimes_may_change_places(tmp_path: Path) -> None:
    app.open_database(settings(tmp_path)).close()
    app.open_database(settings(tmp_path, ROOST_RUNTIME="docker", ROOST_OTHER_RUNTIME="bwrap")).close()
    app.open_database(settings(tmp_path, ROOST_RUNTIME="docker")).close()
    with pytest.raises(BadSettings, match=r"belongs to the runtime docker, but .* Set ROOST_RUNTIME"):
        app.open_database(settings(tmp_path))


def test_the_file_has_no_credentials(tmp_path: Path) -> None:
    record_stores(settings(tmp_path, ROOST_DATABASE_URL=f"postgresql://someone:{HIDDEN}@h/d?password={HIDDEN}"))
    text = (tmp_path / "stores.json").read_text()
    assert HIDDEN not in text
    assert "someone" not in text
    assert (tmp_path / "stores.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "stores.json").write_text(text)
    with pytest.raises(BadSettings, match=r"stores\.json cannot be read"):
        app.open_database(settings(tmp_path))


def test_a_folder_that_was_moved_keeps_its_own_database(tmp_path: Path) -> None:
    app.open_database(settings(tmp_path / "one")).close()
    (tmp_path / "one").rename(tmp_path / "two")
    app.open_database(settings(tmp_path / "two")).close()
    app.open_database(settings(tmp_path / "two", ROOST_BLOBS=str(tmp_path / "two" / "blobs"))).close()
