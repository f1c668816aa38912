import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roost.drivers.engine.contract import EngineInstallFailed, EngineNotInstalled, InvalidVersionName
from roost.drivers.engine.install_staging import InstallStaging
from roost.drivers.engine.version_folder import VersionFolder, check_version, newest_first


def fill(staging: InstallStaging) -> None:
    (staging.path / "file").write_text("whole")


def test_a_version_appears_whole_and_is_made_once(tmp_path: Path) -> None:
    folder = VersionFolder(tmp_path / "thing")
    created = []

    def counting(staging: InstallStaging) -> None:
        assert folder.versions() == []
        created.append(staging.path)
        fill(staging)

    path = folder.put("1.0", counting)
    assert folder.put("1.0", counting) == path == folder.get("1.0")
    assert (path / "file").read_text() == "whole"
    assert len(created) == 1
    assert folder.versions() == ["1.0"]


def test_versions_are_sorted_by_their_numbers() -> None:
    versions = ["1.9", "1.10", "1.10-beta.1", "0.99", "2026.7.1", "2026.7.1-2", "2026.7.1-10"]
    assert newest_first(versions) == ["2026.7.1-10", "2026.7.1-2", "2026.7.1", "1.10", "1.10-beta.1", "1.9", "0.99"]


@pytest.mark.parametrize("version", ["", "-r", "--prefix", "../x", "1/2", "1 2", "1\n", "a", "1;ls", "1" * 65, "."])
def test_an_invalid_version_reaches_neither_disk_nor_argument(tmp_path: Path, version: str) -> None:
    folder = VersionFolder(tmp_path / "thing")
    with pytest.raises(InvalidVersionName):
        check_version(version)
    with pytest.raises(InvalidVersionName):
        folder.put(version, fill)
    with pytest.raises(InvalidVersionName):
        folder.remove(version)
    with pytest.raises(EngineNotInstalled):
        folder.get(version)
    assert not (tmp_path / "thing").exists()


def test_a_failed_install_leaves_nothing(tmp_path: Path) -> None:
    folder = VersionFolder(tmp_path / "thing")

    def failing(staging: InstallStaging) -> None:
        fill(staging)
        raise EngineInstallFailed("no")

    with pytest.raises(EngineInstallFailed):
        folder.put("1.0", failing)
    assert folder.versions() == []
    assert [entry.name for entry in (tmp_path / "thing").iterdir()] == [".lock"]


def test_a_folder_that_cannot_be_written_is_an_install_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineInstallFailed, match="could not be installed"):
        VersionFolder(tmp_path / "file" / "thing").put("1.0", fill)


def test_remove_is_idempotent(tmp_path: Path) -> None:
    folder = VersionFolder(tmp_path / "thing")
    folder.remove("1.0")
    folder.put("1.0", fill)
    folder.remove("1.0")
    folder.remove("1.0")
    assert folder.versions() == []
    assert [entry.name for entry in (tmp_path / "thing").iterdir()] == [".lock"]


def test_files_are_readable_by_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        path = VersionFolder(tmp_path / "thing").put(
            "1.0", lambda staging: staging.run(["touch", "file"], lambda _: None)
        )
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o755
    assert path.parent.stat().st_mode & 0o777 == 0o755
    assert (path / "file").stat().st_mode & 0o777 == 0o644


def slow_install(root: Path, log: Path) -> None:
    def slow(staging: InstallStaging) -> None:
        with log.open("a") as file:
            file.write("begin\n")
        time.sleep(0.3)
        fill(staging)

    VersionFolder(root).put("1.0", slow)


def test_of_two_installers_at_once_one_works_and_both_succeed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    log = tmp_path / "log"
    both = [context.Process(target=slow_install, args=(tmp_path / "thing", log)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(30)
    assert [process.exitcode for process in both] == [0, 0]
    assert log.read_text() == "begin\n"


KILLED = """
import sys
from pathlib import Path
from roost.drivers.engine.version_folder import VersionFolder
child = "echo half > file; echo started; read _ < {gate}; echo late > late"
show = lambda line: print(line, flush=True)
VersionFolder(Path(sys.argv[1])).put("1.0", lambda staging: staging.run(["sh", "-c", child], show))
"""


def test_an_installer_that_outlives_its_killed_server_is_waited_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = KILLED.replace("{gate}", str(gate))
    server = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "thing")], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"started\n"
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stdout.close()
    folder = VersionFolder(tmp_path / "thing")
    assert folder.versions() == []

    context = multiprocessing.get_context("spawn")
    second = context.Process(target=install, args=(tmp_path / "thing",))
    second.start()
    second.join(1)
    assert second.is_alive()  # the first installer's child still holds the lock
    gate.write_text("go\n")
    second.join(30)
    assert second.exitcode == 0
    assert sorted(entry.name for entry in folder.get("1.0").iterdir()) == ["file"]
    assert (folder.get("1.0") / "file").read_text() == "whole"


def install(root: Path) -> None:
    VersionFolder(root).put("1.0", fill)
