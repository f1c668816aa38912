"""Client of Git's smart HTTP protocol, version 2 (gitprotocol-http(5), gitprotocol-v2(5)), for public repositories.

It reads references and receives the pack of one commit; the pack is opaque here. Redirects are not followed, no
credential is sent, and content codings are refused, so that the size that is limited is the size that arrives.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

import httpx2

from roost.core.machine.network_advice import describe_network_error
from roost.drivers.git.pkt_line import MalformedPacket, PacketMarker, PacketReader, encode_command
from roost.drivers.git.remote_contract import (
    MAX_REMOTE_BYTES,
    MAX_REMOTE_REFS,
    RemoteRefs,
    RemoteRefused,
    RemoteTimeout,
    RemoteUnavailable,
)

_BRANCH, _TAG, _HEAD = "refs/heads/", "refs/tags/", "HEAD"
_SERVICE = "git-upload-pack"
_OBJECT_ID = re.compile(rb"[0-9a-f]{40}")
_SHA1 = "object-format=sha1"
_REFS_BYTES = 8 * 1024**2
_IDLE_SECONDS = 20.0
_NAME_BYTES = 255
_DATA, _PROGRESS = 1, 2
_HEADERS = {
    "Git-Protocol": "version=2",
    "Accept-Encoding": "identity",
    "User-Agent": "git/2 (roost)",  # large hosts tell Git from browsers by the beginning
}


class RemoteClient:
    """One repository at a URL that the caller has checked. Errors are those of `RemoteRepositories`."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, url: str) -> None:
        self._url = url.rstrip("/")
        self._capabilities: list[str] = []
        self._http = httpx2.AsyncClient(
            headers=_HEADERS, timeout=_IDLE_SECONDS, transport=transport, trust_env=False, follow_redirects=False
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def list_refs(self) -> RemoteRefs:
        """Return the branches and tags; an annotated tag has the id of what it names."""
        await self._read_capabilities()
        branches: dict[str, str] = {}
        tags: dict[str, str] = {}
        default: str | None = None
        request = ["peel", "symrefs", f"ref-prefix {_HEAD}", f"ref-prefix {_BRANCH}", f"ref-prefix {_TAG}"]
        async with self._post("ls-refs", request, _REFS_BYTES) as packets, aclosing(packets.read_lines()) as lines:
            async for line in lines:
                object_id, name, attributes = _parse_ref(line)
                if name == _HEAD:
                    default = attributes.get("symref-target", "").removeprefix(_BRANCH) or None
                elif name.startswith(_BRANCH):
                    branches[name.removeprefix(_BRANCH)] = object_id
                elif name.startswith(_TAG):
                    tags[name.removeprefix(_TAG)] = attributes.get("peeled", object_id)
                if len(branches) + len(tags) > MAX_REMOTE_REFS:
                    raise RemoteRefused(f"The Git repository has more than {MAX_REMOTE_REFS:,} branches and tags")
        return RemoteRefs(default, branches, tags)

    async def receive_pack(self, commit: str) -> AsyncGenerator[bytes]:
        """Yield the pack of a commit without its history; call `list_refs` before."""
        arguments = ["no-progress", "ofs-delta", "deepen 1", f"want {commit}", "done"]
        async with self._post("fetch", arguments, MAX_REMOTE_BYTES) as packets:
            while (section := await _next_section(packets)) != b"packfile":
                if section is None:
                    raise MalformedPacket
                async with aclosing(packets.read_lines()) as lines:
                    async for _ in lines:
                        pass
            while isinstance(packet := await packets.read(), bytes):
                if packet[0] == _DATA:
                    yield packet[1:]
                elif packet[0] != _PROGRESS:
                    raise RemoteRefused("The server of the Git repository stopped with an error")

    async def _read_capabilities(self) -> None:
        request = self._http.build_request("GET", f"{self._url}/info/refs?service={_SERVICE}")
        async with self._send(request, "advertisement", _REFS_BYTES) as packets:
            first = await packets.read()
            if first == f"# service={_SERVICE}\n".encode():  # servers may leave it out
                if await packets.read() is not PacketMarker.FLUSH:
                    raise MalformedPacket
                first = await packets.read()
            async with aclosing(packets.read_lines()) as lines:
                found = [line.decode(errors="replace") async for line in lines]
        if first != b"version 2\n":
            raise MalformedPacket
        if any(one.startswith("object-format=") and one != _SHA1 for one in found):
            raise RemoteRefused("Git repositories with SHA-256 object names are not supported")
        self._capabilities = [_SHA1] if _SHA1 in found else []

    def _post(self, command: str, arguments: list[str], limit: int) -> AbstractAsyncContextManager[PacketReader]:
        request = self._http.build_request(
            "POST",
            f"{self._url}/{_SERVICE}",
            content=encode_command(command, self._capabilities, arguments),
            headers={"Content-Type": f"application/x-{_SERVICE}-request"},
        )
        return self._send(request, "result", limit)

    @asynccontextmanager
    async def _send(self, request: httpx2.Request, kind: str, limit: int) -> AsyncGenerator[PacketReader]:
        """Send a request and read its response, whose content has the type of this kind."""
        try:
            response = await self._http.send(request, stream=True)
            try:
                _check_response(response, f"application/x-{_SERVICE}-{kind}")
                async with aclosing(_read_limited(response, limit)) as chunks:
                    yield PacketReader(chunks)
            finally:
                await response.aclose()
        except httpx2.TimeoutException:
            raise RemoteTimeout from None
        except httpx2.HTTPError as error:
            raise RemoteUnavailable(f"The Git repository did not answer: {describe_network_error(error)}") from None


def _check_response(response: httpx2.Response, content_type: str) -> None:
    status = response.status_code
    if response.is_redirect:
        raise RemoteRefused("The server redirects to another URL; give the final one, which often ends in .git")
    if status in {401, 403, 404}:
        raise RemoteRefused("The Git repository does not exist or is not public")
    if status != 200:
        raise RemoteUnavailable(f"The server of the Git repository answered with status {status}")
    if response.headers.get("Content-Type") != content_type:
        raise RemoteRefused("The URL does not lead to a Git repository")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise MalformedPacket


async def _read_limited(response: httpx2.Response, limit: int) -> AsyncGenerator[bytes]:
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > limit:
            raise RemoteRefused(f"The Git repository is larger than {limit // 1024**2} MiB")
        yield chunk


async def _next_section(packets: PacketReader) -> bytes | None:
    packet = await packets.read()
    if isinstance(packet, bytes):
        if packet.startswith(b"ERR "):
            raise RemoteRefused("The server of the Git repository does not give this commit")
        return packet.removesuffix(b"\n")
    return None


def _parse_ref(line: bytes) -> tuple[str, str, Mapping[str, str]]:
    object_id, name, *attributes = line.split(b" ") if line.count(b" ") else (b"", b"")
    if not _OBJECT_ID.fullmatch(object_id) or not 0 < len(name) <= _NAME_BYTES:
        raise MalformedPacket
    parts = (one.decode(errors="replace").partition(":") for one in attributes)
    found = {key: value for key, _, value in parts}
    if "peeled" in found and not _OBJECT_ID.fullmatch(found["peeled"].encode()):
        raise MalformedPacket
    return object_id.decode(), name.decode(errors="replace"), found
