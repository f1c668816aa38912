"""Two servers of one database and one bucket: an agent moves from one to the other with all that it has, and back."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.conformance.s3_server import create_client, s3_server
from tests.journeys.server_process import ServerProcess, until, up
from tests.journeys.test_tasks import create_task, tasks_of
from tests.support.acme import find_free_ports

pytestmark = [pytest.mark.engine, pytest.mark.postgres, pytest.mark.container, pytest.mark.timeout(300)]


@contextmanager
def serve_two(folder: Path, database_url: str, **settings: str) -> Iterator[list[ServerProcess]]:
    with s3_server() as address, ExitStack() as stack:
        create_client(address).create_bucket(Bucket="shared")
        shared = {"ROOST_DATABASE_URL": database_url, "ROOST_BLOBS": "s3://shared/roost", "ROOST_KEK": "0" * 64}
        shared |= {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        shared |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"} | settings
        yield [
            stack.enter_context(up(folder / name, "--no-first-agent", ROOST_PEER_ADDRESS=f"127.0.0.1:{port}", **shared))
            for name, port in zip(("one", "two"), find_free_ports(2), strict=True)
        ]


def host_id(server: ServerProcess) -> str:
    return (server.data / "host-id").read_text().strip()


def clone_log(server: ServerProcess, agent: dict[str, Any], folder: Path) -> str:
    cloned = server.roost("clone", agent["agentId"], str(folder))
    assert cloned.returncode == 0, cloned.stderr
    return subprocess.run(
        ["git", "-C", str(folder), "log", "--format=%H"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_an_agent_moves_to_another_server_and_back(tmp_path: Path, database_url: str) -> None:
    with serve_two(tmp_path, database_url) as (one, two):
        agent = one.create("Ada", "openclaw")
        name = agent["agentId"]
        assert one.roost("exec", name, "--", "sh", "-c", "echo kept > file; echo too > ~/other").returncode == 0
        with one.client() as client:
            create_task(client, agent, "later", f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}")
            client.post(f"/v0/agents/{name}/snapshots/sync").raise_for_status()
        tasks, log = tasks_of(one, agent), clone_log(one, agent, tmp_path / "before")
        assert tasks
        assert log
        for source, target in ((one, two), (two, one)):
            moved = source.roost("move", name, "--to", host_id(target))
            assert moved.returncode == 0, moved.stderr
            assert (list(source.warden_pids()), list(target.warden_pids())) == ([], [name])
            assert target.roost("exec", name, "--", "sh", "-c", "cat file ~/other").stdout == "kept\ntoo\n"
            assert tasks_of(target, agent) == tasks
            assert clone_log(target, agent, tmp_path / target.data.name / "clone").endswith(log)
            assert "stand-in" in until(lambda server=target: server.roost("chat", name, "Hello").stdout)
            with target.agent_client(agent) as client:  # with the gateway token from before
                assert client.get("/v1/models").is_success
            assert source.roost("exec", name, "--", "cat", "file").stdout == "kept\n"  # the other server answers
        two.stop()
        refused = one.roost("move", name, "--to", host_id(two))
        assert "to must be one of bwrap, got" in refused.stderr
        assert "stand-in" in one.roost("chat", name, "Hello").stdout


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_parts_of_an_upload_may_go_to_any_server(tmp_path: Path, database_url: str) -> None:
    content = b"abc" * 100_000
    with serve_two(tmp_path, database_url) as (one, two), one.client() as at_one, two.client() as at_two:
        began = at_one.post("/v3/files", headers={"Upload-Length": str(len(content))})
        assert began.status_code == 201, began.text
        path = "/v3/files/" + began.headers["location"].partition("/v3/files/")[2]
        for start, client in ((0, at_two), (100_000, at_one), (200_000, at_two)):
            assert client.head(path).headers["upload-offset"] == str(start)
            part = {"Upload-Offset": str(start), "Content-Type": "application/offset+octet-stream"}
            added = client.patch(path, headers=part, content=content[start : start + 100_000])
            assert added.status_code == 204, added.text
        assert added.headers["upload-cid"] == at_two.head(path).headers["upload-cid"]
        abandoned = at_one.post("/v3/files", headers={"Upload-Length": "1"}).headers["location"]
        assert at_two.delete("/v3/files/" + abandoned.partition("/v3/files/")[2]).status_code == 204
        assert [*(one.data / "uploads").iterdir()] == []
        logs = one.text() + two.text()
        assert logs.count('"PATCH"') >= 3
        assert path.rpartition("/")[2] not in logs


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_every_server_answers_for_every_agent(tmp_path: Path, database_url: str) -> None:
    with serve_two(tmp_path, database_url) as (one, two):
        agent = one.create("Ada", "openclaw")
        name = agent["agentId"]
        with two.client() as client:
            client.put(f"/v0/agents/{name}/files/content", params={"path": "large"}, content=b"x" * 20_000_000)
            found = client.get(f"/v0/agents/{name}/files/content", params={"path": "large"})
            assert (found.status_code, len(found.content)) == (200, 20_000_000)
            client.post(f"/v0/agents/{name}/snapshots/sync").raise_for_status()
            assert client.get("/v0/agents/aaaaaaaaaaaaaaaa/files/list").status_code == 404
        assert (
            two.roost("exec", name, "--", "sh", "-c", "cat > file; wc -c < large", input="kept").stdout == "20000000\n"
        )
        assert "stand-in" in two.roost("chat", name, "Hello").stdout
        with two.agent_client(agent) as client:
            assert client.get("/v1/models").is_success
            assert client.get("/v1/models", headers={"Authorization": "Bearer wrong"}).status_code == 401
        log = clone_log(two, agent, tmp_path / "clone")
        assert log == clone_log(one, agent, tmp_path / "again")
        (tmp_path / "clone/pushed").write_text("pushed\n")
        for command in ("add pushed", "-c user.name=A -c user.email=a@b.c commit -qm pushed", "push -q"):
            subprocess.run(["git", "-C", str(tmp_path / "clone"), *command.split()], check=True)
        assert one.roost("exec", name, "--", "cat", "pushed").stdout == "pushed\n"
        bearer = {"Authorization": f"Bearer {two.session['token']}"}
        terminal = f"ws{two.url[4:]}/v0/agents/{name}/console/stream?command=exit+4"
        with connect(terminal, additional_headers=bearer, proxy=None) as socket:
            assert '"exitCode":4' in str([*socket][-1])
        with two.client() as client:
            client.delete(f"/v0/agents/{name}").raise_for_status()
        assert list(one.warden_pids()) == []


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_caller_has_one_quota_at_all_servers(tmp_path: Path, database_url: str) -> None:
    limits = {"ROOST_RATE_LIMIT": "100", "ROOST_RATE_LIMIT_LOOPBACK": "true"}
    with serve_two(tmp_path, database_url, **limits) as (one, two), one.client() as at_one, two.client() as at_two:
        at_two.headers = at_one.headers
        while at_one.get("/v0/agents").status_code == 200:
            pass
        answers = []
        until(lambda: answers.append(at_two.get("/v0/agents").status_code) or answers[-1] == 429, every=0.1)
        assert len(answers) <= 50  # about ten a second, of the hundred that it would grant by itself
