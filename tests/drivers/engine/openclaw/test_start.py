"""The start script, with a program in the engine's place that judges its config as the engine would."""

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
class Place:
    path: Path

    def calls(self) -> list[str]:
        return (self.path / "calls").read_text().splitlines()

    def start(self) -> subprocess.Popen[bytes]:
        script = driver.START
        argv = [
            "/bin/sh",
            "-c",
            script,
            "openclaw",
            *(str(self.path / name) for name in ("config", "platform", "engine")),
        ]
        return subprocess.Popen(argv, start_new_session=True, stderr=subprocess.DEVNULL)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "engine").write_text(ENGINE)
    (tmp_path / "engine").chmod(0o755)
    (tmp_path / "platform").write_text("good platform")
    (tmp_path / "platform").chmod(0o600)
    return Place(tmp_path)


def test_a_refused_config_is_kept_aside_and_the_platforms_own_takes_its_place(place: Place) -> None:
    (place.path / "config").write_text("bad")
    (place.path / "code").write_text("0")
    assert place.start().wait(20) == 0
    assert place.calls() == ["gateway run", "config validate --json", "gateway run"]
    assert (place.path / "config").read_text() == "good platform"
    assert (place.path / "config.rejected").read_text() == "bad"
    assert stat.S_IMODE((place.path / "config").stat().st_mode) == 0o600


@pytest.mark.parametrize(("code", "calls"), [(0, 1), (3, 1), (78, 2)])
def test_an_accepted_config_is_left_alone_however_the_gateway_ends(place: Place, code: int, calls: int) -> None:
    (place.path / "config").write_text("good mine")
    (place.path / "code").write_text(str(code))
    assert place.start().wait(20) == code
    assert len(place.calls()) == calls
    assert (place.path / "config").read_text() == "good mine"
    assert not (place.path / "config.rejected").exists()


def test_a_config_that_the_engine_cannot_judge_is_left_alone(place: Place) -> None:
    (place.path / "config").write_text("bad")
    (place.path / "broken").touch()
    assert place.start().wait(20) == 78
    assert (place.path / "config").read_text() == "bad"
    assert not (place.path / "config.rejected").exists()


def test_a_stop_of_the_group_lets_the_gateway_end_in_its_own_time(place: Place) -> None:
    (place.path / "config").write_text("good mine")
    process = place.start()
    while not (place.path / "up").exists():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(20) == 0
    assert place.calls() == ["gateway run", "stopped"]
