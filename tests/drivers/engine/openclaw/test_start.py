"""The start script with a stub engine that validates its config."""

import os
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from roost.drivers.engine.openclaw import driver

ENGINE = """#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/calls"
case "$1 $2" in
"config validate")
    if [ -e "$here/broken" ]; then exit 1; fi
    if grep -q good "$here/config"; then echo '{"valid":true}'; else echo '{"valid":false}'; exit 1; fi ;;
"gateway run") grep -q good "$here/config" || exit 78
    trap 'echo stopped >> "$here/calls"; exit 0' TERM
    [ -e "$here/code" ] && exit "$(cat "$here/code")"
    touch "$here/up"; while :; do sleep 0.05; done ;;
esac
"""


@dataclass
class StartEnv:
    path: Path

    def calls(self) -> list[str]:
        return (self.path / "calls").read_text().splitlines()

    def start(self) -> subprocess.Popen[bytes]:
        paths = [str(self.path / name) for name in ("config", "platform", "engine")]
        argv = ["/bin/sh", "-c", driver.START, "openclaw", *paths]
        return subprocess.Popen(argv, start_new_session=True, stderr=subprocess.DEVNULL)


@pytest.fixture
def env(tmp_path: Path) -> StartEnv:
    (tmp_path / "engine").write_text(ENGINE)
    (tmp_path / "engine").chmod(0o755)
    (tmp_path / "platform").write_text("good platform")
    (tmp_path / "platform").chmod(0o600)
    return StartEnv(tmp_path)


def test_a_rejected_config_is_renamed_and_replaced_by_the_platforms(env: StartEnv) -> None:
    (env.path / "config").write_text("bad")
    (env.path / "code").write_text("0")
    assert env.start().wait(20) == 0
    assert env.calls() == ["gateway run", "config validate --json", "gateway run"]
    assert (env.path / "config").read_text() == "good platform"
    assert (env.path / "config.rejected").read_text() == "bad"
    assert stat.S_IMODE((env.path / "config").stat().st_mode) == 0o600


@pytest.mark.parametrize(("code", "calls"), [(0, 1), (3, 1), (78, 2)])
def test_a_valid_config_is_preserved_for_any_exit_code(env: StartEnv, code: int, calls: int) -> None:
    (env.path / "config").write_text("good mine")
    (env.path / "code").write_text(str(code))
    assert env.start().wait(20) == code
    assert len(env.calls()) == calls
    assert (env.path / "config").read_text() == "good mine"
    assert not (env.path / "config.rejected").exists()


def test_a_config_that_the_engine_cannot_validate_is_preserved(env: StartEnv) -> None:
    (env.path / "config").write_text("bad")
    (env.path / "broken").touch()
    assert env.start().wait(20) == 78
    assert (env.path / "config").read_text() == "bad"
    assert not (env.path / "config.rejected").exists()


def test_a_stop_of_the_group_waits_for_the_gateway(env: StartEnv) -> None:
    (env.path / "config").write_text("good mine")
    process = env.start()
    while not (env.path / "up").exists():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(20) == 0
    assert env.calls() == ["gateway run", "stopped"]
