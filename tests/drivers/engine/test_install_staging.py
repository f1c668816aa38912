import os
from pathlib import Path

import pytest

from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.install_staging import InstallStaging, query_registry


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
