import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.config import load_settings
from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.install_staging import InstallStaging, query_registry
from roost.drivers.engine.node import node_folder, npm_command
from tests.platforms.tls import untrusted_server


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
