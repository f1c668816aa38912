"""`roost login` and `roost logout`: the key is checked, kept for its owner alone, and sent to its own server only."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import typer

from roost.cli.client.context_file import ServerContext, change_contexts, read_contexts
from roost.core.sensitive import Sensitive
from tests.cli.terminal import FakeServer, fake_server, run, run_on_terminal

CHECK = "GET /v3/data/testAuthentication"


@pytest.fixture
def checked(server: FakeServer) -> FakeServer:
    """Accept every key."""
    server.answers |= {CHECK: (200, {"message": "ok"}), "GET /v0/agents": (200, {"agents": []})}
    return server


def test_a_login_is_used_until_the_logout(checked: FakeServer, config: Path) -> None:
    done = run("login", checked.url, "--key", "-", input="the-key\n")
    name = f"127.0.0.1-{checked.server_port}"
    assert (done.exit_code, done.stdout) == (0, "")
    assert name in done.stderr
    assert "the-key" not in done.stderr
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700
    assert run("agents", "list").exit_code == 0
    assert [headers["Authorization"] for _, headers, _ in checked.requests] == ["Bearer the-key"] * 2
    assert checked.requests[0][1]["Host"].startswith("api.localhost")
    left = run("logout")
    assert f"Forgot {name}" in left.stdout
    assert "the-key" not in config.read_text()
    assert (run("agents", "list").exit_code, run("logout").exit_code) == (3, 2)


def test_a_key_that_is_not_accepted_is_not_kept(server: FakeServer, config: Path) -> None:
    server.answers[CHECK] = (401, {"error": {"code": 401, "message": "Unauthorized"}})
    refused = run("login", server.url, input="wrong-key\n")
    assert (refused.exit_code, "roost keys create" in refused.stderr) == (4, True)
    assert "wrong-key" not in refused.stderr
    assert not config.exists()


def test_a_new_key_for_the_current_context_needs_no_address(checked: FakeServer, config: Path) -> None:
    assert run("login", checked.url, "--name", "work", input="old").exit_code == 0
    assert run("login", input="new").exit_code == 0
    assert json.loads(config.read_text()) == {
        "current": "work",
        "contexts": {"work": {"url": checked.url, "key": "new"}},
    }
    assert run("logout").exit_code == 0
    assert run("login", input="new").exit_code == 2


def test_a_name_stays_with_its_server(checked: FakeServer, config: Path) -> None:
    assert run("login", checked.url, "--name", "work", input="key").exit_code == 0
    before = config.read_text()
    with fake_server() as other:
        refused = run("login", other.url, "--name", "work", input="key")
        assert (refused.exit_code, checked.url in refused.stderr, other.requests) == (2, True, [])
    assert config.read_text() == before


def test_a_key_is_no_argument(checked: FakeServer, config: Path) -> None:
    refused = run("login", checked.url, "--key", "the-key")
    assert (refused.exit_code, checked.requests, config.exists()) == (2, [], False)
    assert "list of processes" in refused.stderr


@pytest.mark.parametrize("key", ["", "\n", "two words", "two\nlines", "schlüssel", "\x1b[A"])
def test_malformed_key_is_not_kept(checked: FakeServer, config: Path, key: str) -> None:
    assert run("login", checked.url, input=key).exit_code == 2
    assert (checked.requests, config.exists()) == ([], False)


@pytest.mark.parametrize(
    "url",
    ["ftp://x.example", "https://u:secret@x.example", "https://x.example/v0", "https://x.example?a=1", "https://", ""],
)
def test_malformed_address_is_refused_without_its_secret(config: Path, url: str) -> None:
    refused = run("login", url, input="key")
    assert (refused.exit_code, "must be like https://" in refused.stderr) == (2, True)
    assert "secret" not in refused.stderr


@pytest.mark.parametrize("name", ["local", "a b", "-x", "../x", "x" * 101])
def test_malformed_context_name_is_not_kept(checked: FakeServer, config: Path, name: str) -> None:
    assert run("login", checked.url, "--name", name, input="key").exit_code == 2
    assert not config.exists()


def test_a_server_that_redirects_gets_no_login(server: FakeServer, config: Path) -> None:
    with fake_server() as other:
        server.headers = {"Location": other.url}
        server.answers[CHECK] = (308, "")
        assert run("login", server.url, input="key").exit_code == 3
        assert (other.requests, config.exists()) == ([], False)


def test_a_host_alone_is_reached_with_tls_and_one_without_tls_is_warned_of(config: Path) -> None:
    assert "https://roost.invalid" in run("login", "roost.invalid", input="key").stderr
    assert "the network can read the key" in run("login", "http://roost.invalid", input="key").stderr


def test_a_key_that_is_typed_is_not_shown(checked: FakeServer, config: Path) -> None:
    code = f"""
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-m", "roost", "login", "{checked.url}"])
seen = b""
while b": " not in seen:  # the space follows once nothing is echoed
    seen += os.read(terminal, 4096)
os.write(terminal, b"typed-key\\n")
try:
    while block := os.read(terminal, 4096):
        seen += block
except OSError:
    pass
assert os.waitpid(pid, 0)[1] == 0, seen
print(seen.decode())
"""
    shown = run_on_terminal(code)
    assert "Logged in" in shown
    assert "typed-key" not in shown
    assert "typed-key" in config.read_text()


def test_logins_at_the_same_time_are_all_kept(checked: FakeServer, config: Path) -> None:
    def log_in(name: str) -> int:
        command = [sys.executable, "-m", "roost", "login", checked.url, "--name", name]
        return subprocess.run(command, input=name, text=True, capture_output=True, check=False).returncode

    names = [f"context-{number}" for number in range(4)]
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(log_in, names)) == [0, 0, 0, 0]
    assert sorted(json.loads(config.read_text())["contexts"]) == names


def test_a_change_waits_for_another_and_keeps_it(config: Path) -> None:
    def add_context(name: str) -> None:
        with change_contexts() as file:
            file.contexts[name] = ServerContext("https://roost.example", Sensitive("key"))

    with ThreadPoolExecutor() as pool, change_contexts() as file:
        other = pool.submit(add_context, "second")
        file.contexts["first"] = ServerContext("https://roost.example", Sensitive("key"))
        with pytest.raises(TimeoutError):
            other.result(0.1)
    other.result()
    assert sorted(read_contexts().contexts) == ["first", "second"]


def test_a_change_that_fails_leaves_the_file(config: Path) -> None:
    with change_contexts() as file:
        file.contexts["work"] = ServerContext("https://roost.example", Sensitive("key"))
    before = config.read_text()

    def forget_twice() -> None:
        with change_contexts() as file:
            del file.contexts["work"]
            file.get("work")

    with pytest.raises(typer.Exit):
        forget_twice()
    assert config.read_text() == before
