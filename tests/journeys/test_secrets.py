"""Secrets from a user's view: stored by command, seen by the agent's tools, leaked nowhere, sealed with a new key."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.test_abuse_leaks import _stored_content
from tests.journeys.server_process import ROOST, ServerProcess, up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]

SECRET, KEY, ODD = "hush-4f1e9a77c2", "sk-hush-77aa31d0", "line one of hush-2b\nline two of hush-2b\n"
SHOWN = "shown-5be1"


def keep(server: ServerProcess, name: str, value: str, *flags: str) -> None:
    made = server.roost("secrets", "create", name, *flags, input=value)
    assert made.returncode == 0, made.stderr
    assert value.strip() not in made.stdout + made.stderr


def restart(server: ServerProcess, path: str) -> None:
    with server.client() as api:
        assert api.post(f"{path}/restart").status_code == 200


def terminal_output(server: ServerProcess, agent: str, command: str) -> str:
    """Return the output of the agent's terminal tool, as the agent reports it."""
    said = server.roost("chat", agent, f'/tool terminal {{"command": "{command}"}}')
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_from_the_first_secret_to_a_new_key(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent", ROOST_LOG_LEVEL="debug") as server:
        keep(server, "MY_SECRET", SECRET + "\n")
        with server.client() as api:
            for body in (
                {"name": "MY_VARIABLE", "value": SHOWN, "type": "variable"},
                {"name": "OPENROUTER_API_KEY", "value": KEY},
                {"name": "ODD", "value": ODD},
            ):
                assert api.post("/v0/secrets", json=body).status_code == 201
        path = f"/v0/agents/{server.create('Ada', 'hermes')['agentId']}"
        attached = server.roost("secrets", "attach", "Ada", "MY_SECRET", "MY_VARIABLE", "ODD", "OPENROUTER_API_KEY")
        assert "roost agents restart Ada" in attached.stdout
        restart(server, path)

        seen = terminal_output(
            server, "Ada", "echo variable=$MY_VARIABLE length=${#MY_SECRET} key=[$OPENROUTER_API_KEY]"
        )
        assert f"variable={SHOWN} length={len(SECRET)} key=[]" in seen, seen

        assert_no_leak(server)
        before = (server.data / "keys" / "kek").read_text().strip()
        rotated = server.roost("secrets", "rotate-key")
        assert rotated.returncode == 0, rotated.stderr
        assert before not in (server.data / "keys" / "kek").read_text()
        restart(server, path)  # by the server that kept running
        keep(server, "LATER", "after the exchange")
        server.stop()
        server.start()
        assert f"variable={SHOWN}" in terminal_output(server, "Ada", "echo variable=$MY_VARIABLE")


def test_a_server_whose_key_was_lost_does_not_start_and_makes_none(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "data")]
    (tmp_path / "data").mkdir()
    subprocess.run([*ROOST, "keys", "create", *data], check=True, capture_output=True)
    key = tmp_path / "data" / "keys" / "kek"
    key.rename(tmp_path / "kek")
    started = subprocess.run(
        [*ROOST, "up", "--port", "0", "--no-first-agent", *data],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert started.returncode == 2
    assert started.stderr.startswith("Error: ")
    assert "is missing" in started.stderr
    assert not key.exists()


def assert_no_leak(server: ServerProcess) -> None:
    """Check that no secret value is in a response, a log, a file, or a foreign process of the host."""
    with server.client() as api:
        agent = api.get("/v0/agents").json()["agents"][0]["agentId"]
        paths = ("", "/secrets", "/logs")
        answers = [api.get(f"/v0/agents/{agent}{path}").text for path in paths]
        answers += [api.get("/v0/secrets").text, api.get("/v0/agents").text, server.text()]
        for body in (
            {"name": f"{SECRET}=", "value": KEY},
            {"name": "MY_SECRET", "value": SECRET},
            {"name": "X", "value": [KEY]},
        ):
            refused = api.post("/v0/secrets", json=body)
            assert refused.status_code in {400, 409}
            answers.append(refused.text)
        answers.append(api.post(f"/v0/agents/{agent}/secrets", json={"secretIds": [SECRET]}).text)
    for secret in (SECRET, KEY, "one of hush-2b", "two of hush-2b"):
        assert not [answer for answer in answers if secret in answer], secret
        for place, content in (*_stored_content(server.data), *_files(server.data), *_environments(server)):
            assert secret.encode() not in content, (place, secret)
    assert SHOWN in answers[3]


def _files(data: Path) -> Iterator[tuple[str, bytes]]:
    """Return everything in the data folder, including the agent's home and workspace."""
    for file in data.rglob("*"):
        if file.is_file() and not file.is_symlink():
            yield str(file), file.read_bytes()


def _environments(server: ServerProcess) -> Iterator[tuple[str, bytes]]:
    """Return the environments of the server and of the wardens; only the agent's own processes have its secrets."""
    pids = [server.pid, *server.warden_pids().values()]
    for pid in pids:
        with contextlib.suppress(OSError):
            yield f"environment of {pid}", Path(f"/proc/{pid}/environ").read_bytes()
    assert os.getpid() not in pids
