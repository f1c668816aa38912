import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.config import load_settings
from roost.drivers.engine.contract import EngineInstallFailed, EngineNotInstalled, InvalidVersionName
from roost.drivers.engine.openclaw.install import node_folder, npm_command
from roost.drivers.engine.version_folder import (
    InstallStaging,
    VersionFolder,
    check_version,
    newest_first,
    query_registry,
)
from tests.platforms.tls import untrusted_server


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


@pytest.fixture
def staging(tmp_path: Path):
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    yield InstallStaging(tmp_path, lock)
    os.close(lock)


def test_lines_of_both_streams_are_passed_on_as_they_come(staging: InstallStaging) -> None:
    lines: list[str] = []
    staging.run(["sh", "-c", "echo one; echo two >&2; pwd"], lines.append)
    assert lines == ["one", "two", str(staging.path)]


def test_a_failure_carries_the_last_lines(staging: InstallStaging) -> None:
    script = "for n in $(seq 100); do echo line $n; done; echo npm http fetch noise; exit 7"
    with pytest.raises(EngineInstallFailed) as failed:
        staging.run(["sh", "-c", script], lambda _: None)
    assert "exited with 7" in failed.value.message
    assert failed.value.message.endswith("line 99 | line 100")
    assert "line 85 " not in failed.value.message


def test_endless_lines_are_cut(staging: InstallStaging) -> None:
    longest = 0

    def measure(line: str) -> None:
        nonlocal longest
        longest = max(longest, len(line))

    with pytest.raises(EngineInstallFailed) as failed:
        staging.run(["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 1"], measure)
    assert longest <= 4096
    assert len(failed.value.message) < 10_000


def test_a_failing_callback_ends_the_installer(staging: InstallStaging) -> None:
    def refuse(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        staging.run(["sh", "-c", "echo $$ > pid; echo x; exec sleep 60"], refuse)
    assert not Path(f"/proc/{(staging.path / 'pid').read_text().strip()}").exists()


def test_a_missing_program_is_reported(staging: InstallStaging) -> None:
    with pytest.raises(EngineInstallFailed, match="no-such-installer"):
        staging.run(["/no-such-installer"], lambda _: None)


def test_a_query_returns_the_output_or_the_reason() -> None:
    assert query_registry(["sh", "-c", "echo 1.0; echo warning >&2"]) == "1.0\n"
    with pytest.raises(EngineInstallFailed, match="no route"):
        query_registry(["sh", "-c", "echo no route >&2; exit 1"])
    with pytest.raises(EngineInstallFailed):
        query_registry(["/no-such-client"])


@pytest.fixture
def unknown_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of a registry whose certificate nobody accepts."""
    for name in ("PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with untrusted_server() as url:
        yield url


def test_a_certificate_that_pip_rejects_is_explained(staging: InstallStaging, unknown_registry: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "0"]
    argv = [*pip, "download", "--no-deps", "--index-url", unknown_registry, "roost-needs-this"]
    with pytest.raises(EngineInstallFailed, match="PIP_CERT") as failed:
        staging.run(argv, lambda _: None)
    assert "A certificate is not accepted" in failed.value.message


def test_a_certificate_that_npm_rejects_is_explained(unknown_registry: str, tmp_path: Path) -> None:
    options = ["--fetch-retries=0", f"--registry={unknown_registry}", f"--cache={tmp_path}"]
    npm = npm_command(node_folder(load_settings().engines))
    with pytest.raises(EngineInstallFailed, match="NODE_EXTRA_CA_CERTS"):
        query_registry([*npm, "view", "roost-needs-this", "versions", *options])


def test_a_proxy_that_is_not_there_is_explained(staging: InstallStaging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1"]
    with pytest.raises(EngineInstallFailed, match="If a proxy leads out, name it: HTTPS_PROXY"):
        staging.run([*pip, "download", "--index-url", "https://registry.invalid", "roost-needs-this"], lambda _: None)
