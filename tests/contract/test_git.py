"""Git Smart HTTP with the real client: clone, pull, credentials and refusals (cases F7, F12, F13, F16)."""

import asyncio
import gzip
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.workspace.git import request_limits
from roost.drivers.blob.object_store import BucketUnavailable
from tests.conformance.git_objects import packet
from tests.conformance.runtimes import until
from tests.contract.git_client import GitClient
from tests.support.server import RunningServer

pytestmark = pytest.mark.container
ON_SERVICES = {
    *("test_a_clone_has_the_files_in_every_protocol", "test_shallow_and_partial_clones_fetch_the_rest_later"),
    *("test_a_pull_fetches_what_was_committed_since", "test_an_agent_without_commits_can_be_cloned"),
    "test_a_rotated_token_ends_access_at_once",
}
UPLOAD_PACK = {"service": "git-upload-pack"}
UPLOAD = {"Content-Type": "application/x-git-upload-pack-request"}


@pytest.fixture(scope="module")
async def shared(server: RunningServer) -> dict[str, Any]:
    """An agent, whose repository has one commit."""
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
    await GitClient(server, agent, Path()).commit(a_txt=b"text", large=os.urandom(2 * 1024**2))
    return agent


@pytest.fixture
def client(server: RunningServer, shared: dict[str, Any], tmp_path: Path) -> GitClient:
    return GitClient(server, shared, tmp_path)


@pytest.fixture
def http(server: RunningServer, shared: dict[str, Any]) -> httpx.AsyncClient:
    """An HTTP client at the agent's repository."""
    return basic(server, shared, shared["gatewayToken"])


def basic(
    server: RunningServer, agent: dict[str, Any], password: str, host: str = "agents.localhost"
) -> httpx.AsyncClient:
    made = server.client(host=host)
    made.headers["Authorization"] = "Basic " + b64encode(f"anyone:{password}".encode()).decode()
    made.base_url = f"{str(made.base_url).rstrip('/')}/v0/agents/{agent['agentId']}/git"
    return made


async def test_a_clone_has_the_files_in_every_protocol(client: GitClient) -> None:
    head = await client.server.roost.drivers.git.head(client.agent["agentId"])
    for version in ("0", "2"):
        clone = await client.clone(f"v{version}", "-c", f"protocol.version={version}")
        assert (clone / "a.txt").read_bytes() == b"text"
        assert (clone / "large").stat().st_size == 2 * 1024**2
        assert (await client.run("rev-parse", "main", cwd=clone.name)).strip() == head


async def test_the_agents_own_address_has_the_repository_too(client: GitClient) -> None:
    own = f"{client.agent['agentId']}.agents.localhost"
    short = client.url(own).replace(f"/v0/agents/{client.agent['agentId']}", "/v0")
    for url in (client.url(own), short, client.url("localhost")):
        assert "refs/heads/main" in await client.run("ls-remote", url)
    assert "not found" in await client.run("ls-remote", short.replace(own, "agents.localhost"), ok=False)


async def test_shallow_and_partial_clones_fetch_the_rest_later(client: GitClient) -> None:
    head = await client.server.roost.drivers.git.head(client.agent["agentId"])
    second = await client.commit(more=b"more")
    await client.clone("shallow", "--depth=1")
    assert (await client.run("rev-list", "--count", "HEAD", cwd="shallow")).strip() == "1"
    await client.run("fetch", "-q", "--unshallow", cwd="shallow")
    assert (await client.run("rev-parse", "HEAD~1", cwd="shallow")).strip() == head
    for version in ("0", "2"):
        partial = f"partial{version}"
        await client.clone(partial, "--filter=blob:none", "--no-checkout", "-c", f"protocol.version={version}")
        assert "?" in await client.run("rev-list", "--objects", "--missing=print", "HEAD", cwd=partial)
        await client.run("checkout", "-q", "main", cwd=partial)
        assert (client.folder / partial / "more").read_bytes() == b"more"
    assert second == await client.server.roost.drivers.git.head(client.agent["agentId"])


async def test_a_pull_fetches_what_was_committed_since(client: GitClient) -> None:
    clone = await client.clone("work")
    await client.commit(a_txt=b"changed")
    await client.run("pull", "-q", "--ff-only", cwd="work")
    assert (clone / "a.txt").read_bytes() == b"changed"


async def test_a_clone_that_may_lack_changes_says_so(client: GitClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the bucket is away a clone gets what was committed before."""
    await client.commit(outdated_txt=b"1")
    git = client.server.roost.agents.workspace.git

    async def commit_changes(agent_id: str) -> None:
        raise BucketUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(git._snapshots, "commit_changes", commit_changes)
        for version in (2, 1, 0):
            options = "-c", f"protocol.version={version}", "clone", client.url(), f"outdated{version}"
            said = await client.run(*options)
            warning = f"warning: the agent's latest changes may be missing here: {BucketUnavailable.message}"
            assert f"remote: {warning}" in said, (version, said)
            assert (client.folder / f"outdated{version}" / "outdated.txt").read_bytes() == b"1"
    assert "remote: warning" not in await client.run("clone", client.url(), "current")


async def test_a_large_negotiation_is_compressed_and_understood(client: GitClient) -> None:
    """The client sends its commits, of which the server knows none, in a gzip'd body."""
    await client.run("init", "-q", "-b", "main", "own")
    stream = "".join(
        f"commit refs/heads/b{number}\ncommitter x <x@x> {number} +0000\ndata 0\n" for number in range(3_000)
    )
    (client.folder / "stream").write_text(stream)
    with (client.folder / "stream").open("rb") as given:
        importing = await asyncio.create_subprocess_exec(
            "git", "fast-import", "--quiet", cwd=client.folder / "own", stdin=given
        )
        assert await importing.wait() == 0
    for version in ("0", "2"):
        await client.run("-c", f"protocol.version={version}", "fetch", "-q", client.url(), cwd="own")
    assert (await client.run("rev-parse", "FETCH_HEAD", cwd="own")).strip()


async def test_an_agent_without_commits_can_be_cloned(server: RunningServer, tmp_path: Path) -> None:
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "new"})).json()["agent"]
    client = GitClient(server, agent, tmp_path)
    assert "empty repository" in await client.run("clone", client.url(), "x")
    folder = server.roost.core.settings.data / "git" / agent["agentId"]
    assert folder.is_dir()
    deleted = await server.client(server.key()).delete(f"/v0/agents/{agent['agentId']}")
    assert deleted.status_code == 200
    assert not folder.exists(), "the repository goes with its agent"
    assert "Authentication failed" in await client.run("clone", client.url(), "y", ok=False)


async def test_a_wrong_password_is_refused_with_a_challenge(
    server: RunningServer, client: GitClient, shared: dict[str, Any]
) -> None:
    other = (await server.client(server.key()).post("/v0/agents", json={"name": "b"})).json()["agent"]
    wrong = ["wrong", other["gatewayToken"], server.key(), shared["gatewayToken"] + "0", "ü"]
    for host in ("agents.localhost", f"{shared['agentId']}.agents.localhost"):
        for password in wrong:
            answer = await basic(server, shared, password, host).get("/info/refs", params=UPLOAD_PACK)
            assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})
            assert answer.headers["www-authenticate"] == 'Basic realm="Roost"'
    elsewhere = basic(server, shared, shared["gatewayToken"], f"{other['agentId']}.agents.localhost")
    assert (await elsewhere.get("/info/refs", params=UPLOAD_PACK)).status_code == 401
    assert "Authentication failed" in await client.run("ls-remote", client.url(password="wrong"), ok=False)


@pytest.mark.parametrize("value", ["Basic", "Basic !", "Basic YQ==", "Bearer {token}", "Digest x", "Basic \xff"])
async def test_other_credentials_are_refused(server: RunningServer, shared: dict[str, Any], value: str) -> None:
    client = server.client()
    headers = {b"Authorization": value.format(token=shared["gatewayToken"]).encode("latin-1")}
    upload = {name.encode(): content.encode() for name, content in UPLOAD.items()}
    path = f"/v0/agents/{shared['agentId']}/git"
    for answer in (
        await client.get(f"{path}/info/refs?service=git-upload-pack", headers=headers),
        await client.post(f"{path}/git-upload-pack", headers=headers | upload, content=b"0000"),
        await client.get(f"{path}/info/refs?service=git-upload-pack&token={shared['gatewayToken']}"),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")


async def test_a_rotated_token_ends_access_at_once(server: RunningServer, tmp_path: Path) -> None:
    management = server.client(server.key())
    agent = (await management.post("/v0/agents", json={"name": "r"})).json()["agent"]
    client = GitClient(server, agent, tmp_path)
    await client.run("ls-remote", client.url())
    rotated = await management.post(f"/v0/agents/{agent['agentId']}/gateway-token/rotate")
    assert rotated.status_code == 200, rotated.text
    assert "Authentication failed" in await client.run("ls-remote", client.url(), ok=False)


async def test_other_services_and_the_dumb_protocol_are_refused(http: httpx.AsyncClient) -> None:
    for service in ("git-upload-archive", "upload-pack", "../../x", ""):
        answer = await http.get("/info/refs", params={"service": service} if service else {})
        assert answer.status_code == 403
    for path in ("/HEAD", "/objects/info/packs", "/config", "/git-upload-archive", "/info/refs/x"):
        assert (await http.get(path)).status_code == 404
    assert (await http.get("/../git/.git/config")).status_code == 404
    assert (await http.get("/git-upload-pack")).status_code == 405


async def test_responses_are_typed_and_not_cached(http: httpx.AsyncClient) -> None:
    answer = await http.get("/info/refs", params=UPLOAD_PACK)
    assert answer.headers["content-type"] == "application/x-git-upload-pack-advertisement"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.content.startswith(packet(b"# service=git-upload-pack\n") + b"0000")
    answer = await http.head("/info/refs", params=UPLOAD_PACK)
    assert (answer.status_code, answer.content) == (200, b"")
    answer = await http.post("/git-upload-pack", content=b"0000", headers=UPLOAD)
    assert answer.headers["content-type"] == "application/x-git-upload-pack-result"
    wrong = await http.post("/git-upload-pack", content=b"0000", headers={"Content-Type": "text/plain"})
    assert wrong.status_code == 415


async def test_malformed_bodies_are_refused(http: httpx.AsyncClient) -> None:
    zipped = {**UPLOAD, "Content-Encoding": "gzip"}
    whole = gzip.compress(b"0000")
    cases = [(UPLOAD, b"garbage"), (zipped, b"garbage"), (zipped, whole[:-4]), (zipped, whole + b"x"), (zipped, b"")]
    for headers, body in cases:
        answer = await http.post("/git-upload-pack", content=body, headers=headers)
        assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert (await http.post("/git-upload-pack", content=whole, headers=zipped)).status_code == 200
    unknown = {**UPLOAD, "Content-Encoding": "br"}
    assert (await http.post("/git-upload-pack", content=b"x", headers=unknown)).status_code == 415


async def test_bodies_are_bounded_as_sent_and_as_decompressed(
    http: httpx.AsyncClient, client: GitClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limits.read_body, "__kwdefaults__", {"limit": 8 * 1024**2})
    head = await client.server.roost.drivers.git.head(client.agent["agentId"])
    wants = packet(f"want {head}\n".encode()) * 1000
    bomb = gzip.compress(wants * 1000, 9)
    assert len(bomb) < 1024**2
    zipped = await http.post("/git-upload-pack", content=bomb, headers={**UPLOAD, "Content-Encoding": "gzip"})
    assert (zipped.status_code, zipped.json()["error"]) == (413, "The request of Git is larger than 1 GiB")
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += len(wants)
            yield wants

    try:
        async with asyncio.timeout(30):
            answer = await http.post("/git-upload-pack", content=endless(), headers=UPLOAD)
    except httpx.TransportError:
        answer = None  # refused while it was sent
    assert answer is None or answer.status_code == 413
    assert sent < 256 * 1024**2, "the server reads little more than it accepts"


async def test_a_client_that_leaves_ends_the_command(server: RunningServer, shared: dict[str, Any]) -> None:
    """A reader that stops in the middle of a pack, and one that sends half a request."""
    for missing in (0, 1000):
        reader, writer = await fetch(server, shared, missing)
        if not missing:
            await reader.readexactly(100_000)
        await until(_sandboxes)
        writer.transport.abort()
        await until(lambda: not _sandboxes())


async def test_a_rotation_ends_a_running_clone(server: RunningServer, tmp_path: Path) -> None:
    management = server.client(server.key())
    agent = (await management.post("/v0/agents", json={"name": "s"})).json()["agent"]
    await GitClient(server, agent, tmp_path).commit(large=os.urandom(32 * 1024**2))
    reader, writer = await fetch(server, agent)
    await reader.readexactly(100_000)
    await management.post(f"/v0/agents/{agent['agentId']}/gateway-token/rotate")
    size = 0
    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            while chunk := await reader.read(100_000):
                size += len(chunk)
    writer.close()
    assert size < 32 * 1024**2
    await until(lambda: not _sandboxes())


async def fetch(
    server: RunningServer, agent: dict[str, Any], missing: int = 0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for the whole pack in a request of which some bytes are missing."""
    head = await server.roost.drivers.git.head(agent["agentId"])
    want = packet(f"want {head} ofs-delta\n".encode()) + b"0000" + packet(b"done\n")
    token = b64encode(f"x:{agent['gatewayToken']}".encode()).decode()
    lines = (
        f"POST /v0/agents/{agent['agentId']}/git/git-upload-pack HTTP/1.1",
        f"Host: agents.localhost:{server.port}",
        f"Authorization: Basic {token}",
        f"Content-Type: {UPLOAD['Content-Type']}",
        f"Content-Length: {len(want) + missing}",
        *("", ""),
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write("\r\n".join(lines).encode() + want)
    return reader, writer


def _sandboxes() -> list[int]:
    """Return the pids of commands in sandboxes that are children of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status, command = (folder / "status").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"PPid:\t{os.getpid()}\n" in status and b"upload-pack" in command:
            found.append(int(folder.name))
    return found
