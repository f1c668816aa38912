"""`roost up`: the first agent, the key that it leaves for the command line, and all found again the next time."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx2 as httpx
import pytest

from roost import app, config
from roost.agents.registry.model import AgentProfile
from roost.cli.server.up import _data_flag, _print_agents, _program_name, _write_session
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.cli.terminal import run
from tests.drivers.chat_platform.stand_in import TELEGRAM_BOT

UP = """
import gc, sys
from roost import config
from roost.app import create_drivers
from roost.cli.server.up import run_server
from roost.core.problem import Problem
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.runtime.fake import FakeRuntime
settings = config.load_settings(port=sys.argv[2])
runtime = FakeRuntime(settings.data) if sys.argv[3] == "fake" else None
drivers = create_drivers(settings, runtime=runtime, engines=[FakeEngine()])
try:
    run_server(settings, drivers, first_agent=sys.argv[1] == "first")
except Problem as problem:
    sys.exit(problem.message)
print(f"{gc.get_freeze_count() > 1000=}, {sys.getswitchinterval() < 0.001=}")
"""
DEADLINE = 30.0
TERMINAL = "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.login_tty(1)"
"""A terminal of its own; the tests themselves may run in `nohup`."""


class UpProcess:
    """A `roost up` with the fake engine, and what it printed."""

    def __init__(self, process: "subprocess.Popen[str]", data: Path) -> None:
        self.process, self.data = process, data

    def text(self) -> str:
        return self.data.with_suffix(".out").read_text()

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, self.text()
            assert self.process.poll() is None, self.text()
            time.sleep(0.02)

    def prints(self, text: str) -> None:
        self.until(lambda: text in self.text())

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    @property
    def session(self) -> dict[str, str]:
        return json.loads((self.data / "cli.json").read_text())

    def agents(self) -> list[dict]:
        headers = {"Authorization": f"Bearer {self.session['token']}"}
        return httpx.get(f"{self.session['url']}/v0/agents", headers=headers, trust_env=False).json()["agents"]


@contextmanager
def up(
    data: Path, first: str = "first", port: int = 0, runtime: str = "fake", **environment: str
) -> Iterator[UpProcess]:
    with data.with_suffix(".out").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", UP, first, str(port), runtime],
            stdout=output,
            stderr=output,
            text=True,
            env={**os.environ, "ROOST_DATA": str(data), **environment},
        )
    server = UpProcess(process, data)
    try:
        yield server
    finally:
        if process.poll() is None:
            server.stop()


def test_the_first_agent_and_all_of_it_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as server:
        server.prints("Press Ctrl-C")
        text = server.text()
        (agent,) = server.agents()
        assert (agent["name"], agent["status"]) == ("First agent", "running")
        assert f"chat --data {data} {agent['agentId']}" in text
        assert f"http://{agent['agentId']}.agents.localhost:" in text
        token = server.session["token"]
        assert token not in text
        assert (data / "cli.json").stat().st_mode & 0o777 == 0o600
        said = run("chat", "First agent", "Good morning", "--data", str(data))
        assert (said.exit_code, "Good morning" in said.stdout) == (0, True), said.stderr
        assert server.stop() == 0
        assert "Stopping the agents" in server.text()
        assert "gc.get_freeze_count() > 1000=True, sys.getswitchinterval() < 0.001=True" in server.text()
        assert "Traceback" not in server.text()
        assert "not this server" not in server.text()
    with up(data, ROOST_URL="https://roost.example", ROOST_TOKEN="key") as server:
        server.prints("Press Ctrl-C")
        assert (
            "reach https://roost.example, not this server. To reach it: `unset ROOST_URL ROOST_TOKEN`" in server.text()
        )
        assert server.session["token"] == token
        assert [one["agentId"] for one in server.agents()] == [agent["agentId"]]
        assert agent["agentId"] in server.text()
        server.until(lambda: server.agents()[0]["status"] == "running")
        assert server.stop(signal.SIGTERM) == 0
        assert "Stopping the agents" in server.text()


@pytest.mark.container
def test_sigterm_can_leave_agents_to_the_next_server_and_ctrl_c_ends_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ExitStack() as cleanup:
        with up(data, runtime="bwrap", ROOST_KEEP_AGENTS_ON_STOP="true") as server:
            server.prints("Press Ctrl-C")
            (record,) = data.glob("run/*/container.json")
            container = record.read_text()
            warden = Path(f"/proc/{json.loads(container)['warden']['pid']}")
            cleanup.callback(lambda: warden.exists() and os.kill(int(warden.name), signal.SIGKILL))
            assert server.stop(signal.SIGTERM) == 0
            assert "The agents keep running" in server.text()
        assert warden.exists()
        with up(data, runtime="bwrap", ROOST_KEEP_AGENTS_ON_STOP="true") as server:
            server.prints("Press Ctrl-C")
            assert "(fake, running)" in server.text()
            assert [one["status"] for one in server.agents()] == ["running"]
            assert record.read_text() == container
            assert server.stop(signal.SIGINT) == 0
            assert "Stopping the agents" in server.text()
        assert not warden.exists()


@pytest.mark.container
@pytest.mark.parametrize("output", ["terminal", "pipe"])
def test_the_agents_stop_when_nobody_reads_the_output_any_more(tmp_path: Path, output: str) -> None:
    """A closed terminal sends SIGHUP; Ctrl-C in `make up | tee log` ends `tee` first."""
    ours, theirs = os.openpty() if output == "terminal" else os.pipe()
    code = TERMINAL + UP if output == "terminal" else UP
    process = subprocess.Popen(
        [sys.executable, "-c", code, "first", "0", "bwrap"],
        stdout=theirs,
        env={**os.environ, "ROOST_DATA": str(tmp_path / "data")},
    )
    with ExitStack() as cleanup:
        cleanup.callback(process.wait)
        cleanup.callback(process.kill)
        os.close(theirs)
        seen = b""
        while b"Press Ctrl-C" not in seen:
            seen += os.read(ours, 65536) or pytest.fail(seen.decode())
        (record,) = tmp_path.glob("data/run/*/container.json")
        warden = Path(f"/proc/{json.loads(record.read_text())['warden']['pid']}")
        cleanup.callback(lambda: warden.exists() and os.kill(int(warden.name), signal.SIGKILL))
        os.close(ours)
        if output == "pipe":
            process.send_signal(signal.SIGINT)
        process.wait(DEADLINE)
        assert not warden.exists()


def test_a_key_that_is_no_good_any_more_is_replaced(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data, "none") as server:
        server.prints("Press Ctrl-C")
        token = server.session["token"]
        assert server.agents() == []
    (key,) = json.loads(run("keys", "list", "--data", str(data), "-o", "json").stdout)
    assert run("keys", "revoke", key["id"], "--yes", "--data", str(data)).exit_code == 0
    with up(data, "none") as server:
        server.until(lambda: server.session["token"] != token)
        server.prints("Press Ctrl-C")
        assert server.agents() == []


@pytest.mark.parametrize("left", ["", "[]", '{"token": 7}', '{"token": "no JWT"}'])
def test_a_damaged_session_is_rewritten(tmp_path: Path, left: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "cli.json").write_text(left)
    with up(data, "none") as server:
        server.prints("Press Ctrl-C")
        assert server.agents() == []


def test_ctrl_c_does_not_wait_for_the_first_agent(tmp_path: Path) -> None:
    """Cut off right in the middle; the next start makes it good."""
    data = tmp_path / "data"
    with up(data) as server:
        server.until(lambda: list(data.glob("agents/*")) and "Roost" in server.text())
        assert server.stop() == 0
        assert "Traceback" not in server.text()
    with up(data) as server:
        server.prints("Press Ctrl-C")
        server.until(lambda: [one["status"] for one in server.agents()] == ["running"])


def test_a_stop_answers_a_request_that_waits_for_a_silent_chat_platform(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as platform, ThreadPoolExecutor(1) as thread:
        platform.settimeout(DEADLINE)
        url = f"http://127.0.0.1:{platform.getsockname()[1]}"
        with up(tmp_path / "data", ROOST_TELEGRAM_API=url) as server:
            server.prints("Press Ctrl-C")
            address = f"{server.session['url']}/v0/agents/{server.agents()[0]['agentId']}/channels/telegram"
            headers = {"Authorization": f"Bearer {server.session['token']}"}
            body = {"botToken": TELEGRAM_BOT}
            request = partial(httpx.post, address, json=body, headers=headers, timeout=DEADLINE, trust_env=False)
            answering = thread.submit(request)
            with platform.accept()[0]:
                assert server.stop(signal.SIGTERM) == 0
                answer = answering.result(DEADLINE)
    assert (answer.status_code, answer.json()) == (503, {"error": "The server is stopping"})
    assert answer.headers["Retry-After"] == "5"


@pytest.mark.parametrize(("folder", "told"), [("one", "Another server runs on"), ("two", "Choose another with --port")])
def test_two_on_one_folder_and_two_on_one_port(tmp_path: Path, folder: str, told: str) -> None:
    with up(tmp_path / "one", "none") as server:
        server.prints("Press Ctrl-C")
        port = httpx.URL(server.session["url"]).port
        assert port is not None
        again = [sys.executable, "-c", UP, "none", str(port), "fake"]
        environment = {**os.environ, "ROOST_DATA": str(tmp_path / folder)}
        second = subprocess.run(again, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert second.returncode == 1
        assert told in second.stderr
        assert server.agents() == []


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7"),
        ("0.0.0.0", "http://127.0.0.1:7"),
        ("localhost", "http://127.0.0.1:7"),
        ("::1", "http://[::1]:7"),
        ("192.0.2.1", "http://192.0.2.1:7"),
    ],
)
def test_where_the_command_line_connects(tmp_path: Path, host: str, url: str) -> None:
    environment = {"ROOST_DATA": str(tmp_path), "ROOST_ALLOW_PLAIN_HTTP": "true"}
    _write_session(tmp_path / "cli.json", config.load_settings(environment, host=host, port=7), "localhost", "t")
    wanted = {"url": url, "token": "t", "domain": "localhost", "tls": False}
    assert json.loads((tmp_path / "cli.json").read_text()) == wanted
    assert (tmp_path / "cli.json").stat().st_mode & 0o777 == 0o600


def test_the_first_agents_of_many_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config.load_settings({"ROOST_DATA": str(tmp_path)})
    drivers = app.create_drivers(settings, runtime=FakeRuntime(tmp_path), engines=[FakeEngine()])
    server = app.build_server(settings, drivers)
    try:
        core, agents = server.core, server.agents.registry.runtimes.agents
        tenant = core.db.run(lambda c: tenants.ensure_tenant(c, "acme", Plan.PAID))
        made = [
            core.db.run(lambda c, name=f"n{number:02}": agents.create(c, tenant.id, AgentProfile(name), "fake", "1"))
            for number in range(12)
        ]
        _print_agents(server, made)
    finally:
        core.close()
    shown = capsys.readouterr().out
    assert [name for name in (agent.profile.name for agent in made) if name in shown] == [f"n{n:02}" for n in range(10)]
    assert "2 more agents: " in shown
    assert f"agents list --data {tmp_path}" in shown.replace("\n", " ")


def test_how_to_find_a_server_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _data_flag(config.load_settings({})) == ""
    assert _data_flag(config.load_settings({"ROOST_DATA": "a b"})) == f" --data '{tmp_path}/a b'"


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        (".venv/bin/roost", ".venv/bin/roost"),
        ("/usr/local/bin/roost", "roost"),
        ("/checkout/roost/__main__.py", f"{Path(sys.executable).name} -m roost"),
    ],
)
def test_how_to_call_this_program_again(monkeypatch: pytest.MonkeyPatch, called: str, typed: str) -> None:
    monkeypatch.setattr(sys, "argv", [called, "up"])
    assert _program_name() == typed
