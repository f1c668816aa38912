"""Remote repositories of a real Git server, and of servers that attack (cases F6 to F8); Git runs in sandboxes."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from roost.drivers.git import remote_client
from roost.drivers.git.contract import EntryKind
from roost.drivers.git.remote import SandboxedRemotes
from roost.drivers.git.remote_contract import (
    RemoteRefNotFound,
    RemoteRefused,
    RemoteRepositories,
    RemoteTimeout,
    RemoteUnavailable,
)
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.net.addresses import Address
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import check_url, transport_factory
from roost.net.policy import EgressPolicy
from tests.conformance.git_backend import run_backend
from tests.conformance.git_objects import commit_tree, delta_bomb, git, make_blob, make_tree, packet

pytestmark = pytest.mark.container
LOOPBACK = (ip_network("127.0.0.0/8"),)
ADVERTISEMENT = packet(b"# service=git-upload-pack\n") + b"0000" + packet(b"version 2\n") + b"0000"
COMMIT = "c" * 40
REFS = b"".join(
    packet(f"{COMMIT} {ref}\n".encode()) for ref in ("HEAD symref-target:refs/heads/main", "refs/heads/main")
)


@dataclass
class SequenceResolver:
    """A resolver whose answers a test chooses; each question takes the next answer, the last one stays."""

    answers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    async def resolve(self, subject: str, host: str) -> Sequence[Address]:
        assert subject == "tenant/ada"
        texts = self.answers[host]
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        return [ip_address(one) for one in text.split()]


def open_remotes(
    folder: Path,
    policy: EgressPolicy,
    names: SequenceResolver | None = None,
    check: Callable[[str], None] | None = None,
) -> RemoteRepositories:
    transports = transport_factory(PublicDialer(policy, names or SequenceResolver()), None)
    sandbox = BwrapSandbox(folder / "data", claims=folder / "claims")
    return SandboxedRemotes(folder / "data/fetched", sandbox, transports, check or partial(check_url, policy))


@pytest.fixture
def remotes(tmp_path: Path) -> RemoteRepositories:
    return open_remotes(tmp_path, EgressPolicy(allow_private=LOOPBACK))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[str]:
    with run_backend(tmp_path / "served") as url:
        yield url


@pytest.fixture
def bare(tmp_path: Path, backend: str) -> Path:
    """An empty served repository, `<backend>/r`."""
    assert backend
    folder = tmp_path / "served/r"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", folder)
    return folder


def branch(bare: Path, tree: str, name: str = "main", *parents: str) -> str:
    commit = commit_tree(bare, tree, *parents)
    git(bare, "update-ref", f"refs/heads/{name}", commit)
    return commit


def tree_of(bare: Path, files: Mapping[str, bytes]) -> str:
    return make_tree(bare, [("100644", name.encode(), make_blob(bare, files[name])) for name in sorted(files)])


async def fetch(remotes: RemoteRepositories, url: str, ref: str | None = None) -> tuple[str, dict[str, bytes]]:
    async with remotes.fetch("tenant/ada", url, ref) as found:
        contents = [b"".join([part async for part in blob.content]) async for blob in found.read_blobs(found.entries)]
        return found.commit, dict(zip([entry.path for entry in found.entries], contents, strict=True))


def left_over(folder: Path) -> list[Path]:
    return list((folder / "data/fetched").glob("*"))


async def test_branches_tags_and_one_commit(
    remotes: RemoteRepositories, backend: str, bare: Path, tmp_path: Path
) -> None:
    first = branch(bare, tree_of(bare, {"a": b"old"}))
    git(bare, "tag", "-a", "-m", "first", "v1", first)
    second = branch(bare, tree_of(bare, {"a": b"new", "b": b""}), "main", first)
    branch(bare, tree_of(bare, {"c": b"x"}), "other/side")
    refs = await remotes.list_refs("tenant/ada", f"{backend}/r")
    assert (refs.default_branch, refs.tags) == ("main", {"v1": first})
    assert refs.branches.keys() == {"main", "other/side"}
    assert await fetch(remotes, f"{backend}/r") == (second, {"a": b"new", "b": b""})
    assert await fetch(remotes, f"{backend}/r/", "v1") == (first, {"a": b"old"})
    assert await fetch(remotes, f"{backend}/r", "refs/heads/other/side") == (refs.branches["other/side"], {"c": b"x"})
    for ref in ("missing", "--upload-pack=x", "main~1", "HEAD:a"):
        with pytest.raises(RemoteRefNotFound):
            await fetch(remotes, f"{backend}/r", ref)
    with pytest.raises(RemoteRefused):
        await fetch(remotes, f"{backend}/r", "0" * 40)
    assert left_over(tmp_path) == []


async def test_remains_of_a_crash_are_removed(
    remotes: RemoteRepositories, backend: str, bare: Path, tmp_path: Path
) -> None:
    branch(bare, tree_of(bare, {"a": b"x"}))
    (tmp_path / "data/fetched/left/objects").mkdir(parents=True)
    await fetch(remotes, f"{backend}/r")
    assert left_over(tmp_path) == []


async def test_attributes_submodules_and_hooks_are_only_data(
    remotes: RemoteRepositories, backend: str, bare: Path
) -> None:
    plain = make_blob(bare, b"* filter=evil\n")
    modules = make_blob(bare, b'[submodule "x"]\n\tpath = sub\n\turl = https://example.com/x.git\n')
    link = make_blob(bare, b"/etc/passwd")
    entries = [
        *(("100644", b".gitattributes", plain), ("100644", b".gitmodules", modules)),
        *(("120000", b"link", link), ("160000", b"sub", COMMIT)),
    ]
    branch(bare, make_tree(bare, entries))
    async with remotes.fetch("tenant/ada", f"{backend}/r", None) as found:
        assert {entry.path: entry.kind for entry in found.entries} == {
            ".gitattributes": EntryKind.FILE,
            ".gitmodules": EntryKind.FILE,
            "link": EntryKind.LINK,
            "sub": EntryKind.SUBMODULE,
        }


async def test_trees_that_attack_are_refused(
    remotes: RemoteRepositories, backend: str, bare: Path, tmp_path: Path
) -> None:
    blob = make_blob(bare, b"x")
    hidden = make_tree(bare, [("40000", b".git", tree_of(bare, {"config": b"x"}))])
    inner = make_tree(bare, [("100644", b"f%d" % number, blob) for number in range(10)])
    for _ in range(5):  # 1,000,000 paths in a few kilobytes
        inner = make_tree(bare, [("40000", b"d%d" % number, inner) for number in range(10)])
    option = make_tree(
        bare, [("100644", b".gitmodules", make_blob(bare, b'[submodule "x"]\n\tpath = -x\n\turl = --upload-pack=x\n'))]
    )
    for tree in (hidden, inner, option):
        branch(bare, tree)
        with pytest.raises(RemoteRefused):
            await fetch(remotes, f"{backend}/r")
    assert left_over(tmp_path) == []


async def test_sizes_are_bounded(
    remotes: RemoteRepositories, backend: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch(bare, tree_of(bare, {"zeros": bytes(80 * 1024**2)}))  # a small pack
    with pytest.raises(RemoteRefused, match="64 MiB"):
        await fetch(remotes, f"{backend}/r")
    branch(bare, tree_of(bare, {"a": bytes(range(256)) * 64}))
    monkeypatch.setattr(remote_client, "MAX_REMOTE_BYTES", 300)
    with pytest.raises(RemoteRefused, match="larger"):
        await fetch(remotes, f"{backend}/r")
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    "url",
    [
        *("ext::sh -c id", "file:///etc", "ssh://-oProxyCommand=id/x", "git@example.com:x.git", "--upload-pack=id"),
        *("https://ada:secret@example.com/x.git", "https://ada@example.com/x.git", "http://example.com/x.git"),
        *("https://127.0.0.1/x", "https://0x7f.1/x", "https://2130706433/x", "https://0177.0.0.1/x", "https://"),
        *("https://[::ffff:10.0.0.1]/x", "https://169.254.169.254/latest", "https://10.0.0.1/x", "https://[::1]/x"),
        *("https://example.com/x?y=1", "https://example.com/x#y", "https://example.com/\nx", "https://exämple.com/x"),
        *("https://example.com:25/x", "https://private.example/x", "https://mixed.example/x", "https://100.64.0.1/x"),
        *("-x", "", "https://" + "x" * 2050),
    ],
)
async def test_urls_that_are_refused(tmp_path: Path, url: str) -> None:
    names = SequenceResolver({"private.example": ["10.0.0.1"], "mixed.example": ["93.184.216.34 127.0.0.1"]})
    remotes = open_remotes(tmp_path, EgressPolicy(), names)
    with pytest.raises(RemoteRefused) as refusal:
        await remotes.list_refs("tenant/ada", url)
    assert "secret" not in refusal.value.message
    assert "10.0.0.1" in url or "10.0.0.1" not in refusal.value.message


Answer = Callable[[str], bytes]


@asynccontextmanager
async def serving(answer: Answer | None) -> AsyncGenerator[tuple[str, list[str]]]:
    """Serve raw responses by path, or none at all; yield the URL and the paths of requests."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            seen.append(head.split()[1] + (" with a credential" if "\r\nauthorization:" in head.lower() else ""))
            if answer is None:
                await reader.read()
            else:
                writer.write(answer(seen[-1]))
                await writer.drain()
        except ConnectionError:
            pass  # the client has left
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/r", seen


def response(body: bytes, kind: str = "advertisement", status: str = "200 OK", more: str = "") -> bytes:
    content_type = f"application/x-git-upload-pack-{kind}"
    return f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{more}Connection: close\r\n\r\n".encode() + body


def attack(pack: bytes) -> Answer:
    """Return a server that sends this pack for its one commit."""
    sent = iter([response(REFS + b"0000", "result")])
    body = packet(b"packfile\n") + b"".join(
        packet(b"\x01" + pack[at : at + 60_000]) for at in range(0, len(pack), 60_000)
    )

    def answer(path: str) -> bytes:
        return response(ADVERTISEMENT) if "info/refs" in path else next(sent, response(body + b"0000", "result"))

    return answer


@pytest.mark.parametrize("pack", [b"", b"PACK", b"PACK" + bytes(100), delta_bomb(2 * 1024**3)], ids=range(4))
async def test_packs_that_attack(remotes: RemoteRepositories, tmp_path: Path, pack: bytes) -> None:
    async with serving(attack(pack)) as (url, _):
        with pytest.raises(RemoteRefused):
            await fetch(remotes, url)
    assert left_over(tmp_path) == []


async def test_redirects_are_not_followed(remotes: RemoteRepositories) -> None:
    async with serving(lambda _: b"") as (inner, reached):
        redirect = response(b"", status="302 Found", more=f"Location: {inner}/info/refs\r\n")
        async with serving(lambda _: redirect) as (url, _):
            with pytest.raises(RemoteRefused, match="redirects"):
                await remotes.list_refs("tenant/ada", url)
        assert reached == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (response(b"", status="404 Not Found"), RemoteRefused),
        (response(b"", status="401 Unauthorized"), RemoteRefused),
        (response(b"", status="500 Oops"), RemoteUnavailable),
        (response(b"<html>", "html"), RemoteRefused),
        (response(packet(b"version 1\n")), RemoteRefused),
        (response(packet(b"version 2\n") + packet(b"object-format=sha256\n") + b"0000"), RemoteRefused),
        (response(b"\x1f\x8b", more="Content-Encoding: gzip\r\n"), RemoteRefused),
        (response(b"0000" * 4_000_000), RemoteRefused),
        (b"nonsense\r\n\r\n", RemoteUnavailable),
        (b"", RemoteUnavailable),
    ],
    ids=range(10),
)
async def test_servers_that_are_no_git_servers(
    remotes: RemoteRepositories, answer: bytes, problem: type[Exception]
) -> None:
    async with serving(lambda _: answer) as (url, _):
        with pytest.raises(problem):
            await remotes.list_refs("tenant/ada", url)


async def test_a_private_repository_gets_no_credential(remotes: RemoteRepositories) -> None:
    """Case F8."""
    answer = response(b"", status="401 Unauthorized", more='WWW-Authenticate: Basic realm="x"\r\n')
    async with serving(lambda _: answer) as (url, seen):
        with pytest.raises(RemoteRefused):
            await remotes.list_refs("tenant/ada", url)
    assert seen == ["/r/info/refs?service=git-upload-pack"]


async def test_too_many_references(remotes: RemoteRepositories) -> None:
    lines = b"".join(packet(f"{COMMIT} refs/heads/{number}\n".encode()) for number in range(5_001))
    answers = iter([response(ADVERTISEMENT), response(lines + b"0000", "result")])
    async with serving(lambda _: next(answers)) as (url, _):
        with pytest.raises(RemoteRefused, match="5,000"):
            await remotes.list_refs("tenant/ada", url)


async def test_a_slow_server_and_a_closed_port(remotes: RemoteRepositories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_client, "_IDLE_SECONDS", 0.2)
    async with serving(None) as (url, _):
        with pytest.raises(RemoteTimeout):
            await remotes.list_refs("tenant/ada", url)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RemoteUnavailable):
        await remotes.list_refs("tenant/ada", f"http://127.0.0.1:{port}/r")


async def test_a_name_that_changes_its_answer_leads_nowhere_else(tmp_path: Path) -> None:
    policy = EgressPolicy(allow_private=[ip_network("127.0.0.1/32")])
    names = SequenceResolver({"rebind.example": ["127.0.0.1", "127.0.0.2"]})
    remotes = open_remotes(tmp_path, policy, names, check=lambda _: None)  # which wants HTTPS for the name
    async with serving(lambda _: response(ADVERTISEMENT)) as (url, seen):
        with pytest.raises(RemoteRefused, match="not on the public internet"):
            await remotes.list_refs("tenant/ada", url.replace("127.0.0.1", "rebind.example"))
    assert seen == ["/r/info/refs?service=git-upload-pack"]
