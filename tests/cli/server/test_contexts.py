"""Contexts: which server a command reaches, whatever options, environment and file say; and damaged files."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import typer

from roost.cli.client.context_file import (
    ServerContext,
    change_contexts,
    contexts_path,
    find_other_server,
    read_contexts,
)
from roost.core.sensitive import Sensitive
from tests.cli.terminal import FakeServer, fake_server, run, run_on_terminal


def write(chosen: str | None = None, /, **urls: str) -> None:
    with change_contexts() as file:
        file.contexts = {name: ServerContext(url, Sensitive(name)) for name, url in urls.items()}
        file.current = chosen


@pytest.fixture
def reached(server: FakeServer, config: Path):
    """Return a function that runs a command and tells which key reached the server; None if none did."""
    server.answers["GET /v0/agents"] = (200, {"agents": []})
    folder = config.parents[2] / "data"
    folder.mkdir()
    (folder / "cli.json").write_text(json.dumps({"url": server.url, "token": "folder", "domain": "localhost"}))
    write("current", current=server.url, other=server.url)

    def run_command(before: list[str], environment: dict[str, str], *, names_folder: bool = False) -> str | None:
        places = {"FOLDER": str(folder), "URL": server.url}
        named = {name: places.get(value, value) for name, value in environment.items()}
        done = run(*before, "agents", "list", *(["--data", str(folder)] if names_folder else []), **named)
        sent = [headers["Authorization"] for _, headers, _ in server.requests]
        assert done.exit_code == (0 if sent else 2), done.stderr
        return sent[0].removeprefix("Bearer ") if sent else None

    return run_command


URL = {"ROOST_URL": "URL", "ROOST_TOKEN": "environment"}
OTHER, LOCAL = {"ROOST_CONTEXT": "other"}, {"ROOST_CONTEXT": "local", "ROOST_DATA": "FOLDER"}


@pytest.mark.parametrize(
    ("before", "environment", "key"),
    [
        ([], {}, "current"),
        ([], {"ROOST_DATA": "FOLDER"}, "folder"),
        ([], OTHER, "other"),
        ([], OTHER | {"ROOST_DATA": "FOLDER"}, "other"),
        ([], LOCAL, "folder"),
        ([], URL, "environment"),
        ([], URL | {"ROOST_DATA": "FOLDER"}, "environment"),
        ([], URL | OTHER, None),
        ([], {"ROOST_URL": "URL"}, None),
        (["--context", "other"], {}, "other"),
        (["--context", "other"], URL | {"ROOST_CONTEXT": "current", "ROOST_DATA": "FOLDER"}, "other"),
        (["--context", "local"], URL | {"ROOST_DATA": "FOLDER"}, "folder"),
    ],
)
def test_the_most_explicit_name_counts(
    reached, before: list[str], environment: dict[str, str], key: str | None
) -> None:
    assert reached(before, environment) == key


@pytest.mark.parametrize(
    ("before", "environment", "key"),
    [
        ([], {}, "folder"),
        ([], {"ROOST_DATA": "elsewhere"}, "folder"),
        ([], URL, None),
        ([], OTHER, None),
        ([], LOCAL, "folder"),
        (["--context", "other"], {}, None),
        (["--context", "local"], {}, "folder"),
    ],
)
def test_a_data_folder_that_is_named(reached, before: list[str], environment: dict[str, str], key: str | None) -> None:
    assert reached(before, environment, names_folder=True) == key


def test_contexts_are_listed_without_keys_and_chosen(config: Path) -> None:
    write("work", work="https://work.example", home="https://home.example")
    rows = json.loads(run("contexts", "list", "-o", "json").stdout)
    assert rows == [
        {"name": "local", "url": None, "current": False},
        {"name": "work", "url": "https://work.example", "current": True},
        {"name": "home", "url": "https://home.example", "current": False},
    ]
    assert "https://home.example" in run("contexts", "use", "home").stdout
    assert read_contexts().current == "home"
    assert "data folder" in run("contexts", "use", "local").stdout
    assert read_contexts().current is None
    assert run("contexts", "remove", "home", "--yes").exit_code == 0
    assert list(read_contexts().contexts) == ["work"]
    missing = run("contexts", "use", "hame")
    assert (missing.exit_code, "known are local, work" in missing.stderr) == (5, True)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "null", '{"current": 1, "contexts": []}', '{"contexts": {"a": 1}}']
)
def test_a_damaged_file(config: Path, content: str) -> None:
    config.parent.mkdir(parents=True)
    config.touch(0o600)
    config.write_text(content)
    refused = run("agents", "list")
    assert (refused.exit_code, f"{config} is damaged" in refused.stderr) == (2, True)


def test_a_file_that_others_can_read_is_refused(config: Path) -> None:
    write("work", work="https://work.example")
    config.chmod(0o644)
    refused = run("agents", "list")
    assert (refused.exit_code, f"chmod 600 {config}" in refused.stderr) == (4, True)


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for other in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", other)
        assert contexts_path() == tmp_path / ".config" / "roost" / "config"


def test_a_link_to_the_file_stays_one(config: Path, tmp_path: Path) -> None:
    config.parent.mkdir(parents=True)
    config.symlink_to(tmp_path / "real")
    write("work", work="https://work.example")
    assert config.is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_written(config: Path) -> None:
    config.parents[1].write_text("")
    assert run("contexts", "use", "local").exit_code == 4


def test_a_context_reaches_its_own_server_only(server: FakeServer, config: Path) -> None:
    server.answers["GET /v0/agents"] = (200, {"agents": []})
    with fake_server() as other:
        write("one", one=server.url, two=other.url)
        other.answers["GET /v0/agents"] = (200, {"agents": []})
        assert run("--context", "two", "agents", "list").exit_code == 0
        assert run("agents", "list").exit_code == 0
        assert [headers["Authorization"] for _, headers, _ in other.requests] == ["Bearer two"]
        assert [headers["Authorization"] for _, headers, _ in server.requests] == ["Bearer one"]


@pytest.mark.parametrize(("before", "environment"), [(["--context", "work"], {}), ([], {"ROOST_CONTEXT": "work"})])
def test_a_command_of_this_machine_is_not_meant_for_a_context(
    config: Path, before: list[str], environment: dict[str, str]
) -> None:
    refused = run(*before, "engines", "list", **environment)
    assert (refused.exit_code, "works on a data folder of this machine" in refused.stderr) == (2, True)


def test_a_current_context_does_not_keep_a_command_from_this_machine(config: Path) -> None:
    write("work", work="https://work.example")
    assert run("engines", "list").exit_code == 0


def test_the_context_of_the_environment_is_the_current_one(config: Path) -> None:
    write("one", one="https://one.example", two="https://two.example")
    rows = json.loads(run("contexts", "list", "-o", "json", ROOST_CONTEXT="two").stdout)
    assert [row["name"] for row in rows if row["current"]] == ["two"]
    assert "ROOST_CONTEXT comes first" in run("contexts", "use", "one", ROOST_CONTEXT="two").stderr
    assert "Forgot two" in run("logout", ROOST_CONTEXT="two").stdout


@pytest.mark.parametrize("current", ["[]", "{}", "1"])
def test_a_damaged_current_context_is_named(config: Path, current: str) -> None:
    write("one", one="https://one.example")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"current": json.loads(current)}))
    assert "is damaged" in run("contexts", "list").stderr


OWN = "http://127.0.0.1:8642"


@pytest.mark.parametrize(
    ("environment", "current", "names_folder", "found"),
    [
        ({}, None, False, None),
        ({}, "work", False, ("https://work.example (context work)", "roost contexts use local")),
        ({}, "work", True, None),
        ({"ROOST_DATA": "/data"}, "work", False, None),
        ({}, "here", False, None),
        ({}, "public", False, None),
        ({"ROOST_CONTEXT": "local"}, "work", False, None),
        ({"ROOST_CONTEXT": "work"}, None, True, ("https://work.example (context work)", "unset ROOST_CONTEXT")),
        ({"ROOST_CONTEXT": "gone"}, None, False, ("the unknown context gone", "unset ROOST_CONTEXT")),
        ({"ROOST_URL": "http://[::1]:8642/"}, "work", False, None),
        ({"ROOST_URL": "http://localhost:1"}, None, True, ("http://localhost:1", "unset ROOST_URL ROOST_TOKEN")),
        ({"ROOST_URL": "http://x:y"}, None, False, ("http://x:y", "unset ROOST_URL ROOST_TOKEN")),
    ],
)
def test_where_commands_go_instead_of_a_server_here(
    config: Path, monkeypatch: pytest.MonkeyPatch, environment, current, names_folder: bool, found
) -> None:
    write(current, work="https://work.example", here="http://localhost:8642", public="https://agents.roost.example")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_other_server(OWN, "roost.example", names_folder=names_folder) == found


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
