"""The operator's kubo node, which fetches from and announces to the public network over its RPC (decision 0014).

Its content is verified like that of any other source. The node connects to a tenant's peer only by IP addresses that
Roost has resolved and admitted; host nodes with HTTP are asked directly. Announced content is imported and pinned on
the node; withdrawing removes the pin, and the node's garbage collection removes the blocks.
"""

import asyncio
import base64
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import httpx2

from roost.core import clock, ids, log
from roost.core.machine.network_advice import describe_network_error
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.model.json_access import as_object, parse_json
from roost.drivers.network.contract import (
    HOST_LIMIT,
    ContentNotAtSource,
    ContentSource,
    NetworkAnnouncer,
    NetworkRefused,
    PublicNetwork,
    SourceFailed,
)
from roost.net.addresses import Address, parse_address

Locate = Callable[[str, int], Awaitable[tuple[Sequence[Address], int]]]
"""Resolves a host and port that a tenant named. Raises a Problem for a forbidden destination."""

IDLE_SECONDS, ANSWER_SECONDS, INTERACTIVE_SECONDS, SLOW_SECONDS = 60.0, 10.0, 3.0, 300.0
"""Timeouts: between chunks of content, for an answer, for an interactive one, and for slow operations."""
MAX_ANNOUNCE_SECONDS = 2 * 3600.0
_CACHE_SECONDS = 60.0
_MAX_PEERS, _MAX_ADDRESSES = 20, 20
_PEER = re.compile(
    r"/(?:ip4|ip6|dns|dns4|dns6)/([^/]+)/(?:(tcp)/([0-9]{1,5})((?:/ws)?)|(udp)/([0-9]{1,5})(/quic(?:-v1)?))"
    r"(/p2p/[A-Za-z0-9]{1,128}(?:/p2p-circuit/p2p/[A-Za-z0-9]{1,128})?)"
)
_IP_ADDRESS = re.compile(r"/ip[46]/([^/]+)/")
CONNECT_SECONDS = 5.0
_MAX_LINE, _LAST_OBJECTS, _MAX_ERROR = 64 * 1024, 8, 500
"""Maximum bytes of a line, number of lines kept, and maximum characters of an error message."""

_log = log.get_logger("network")


class KuboRpc:
    """RPC of a node (docs.ipfs.tech, kubo RPC API): each call is a POST that returns JSON lines or a stream.

    Answers are limited although the node is the operator's own, and its messages go only to the log.
    """

    def __init__(self, url: str, credential: Sensitive[str] | None) -> None:
        """`credential` has kubo's own format: `bearer:TOKEN` or `basic:USER:PASSWORD`."""
        self._url = url
        self._credential = credential
        self._trust = httpx2.create_ssl_context()

    @asynccontextmanager
    async def post(
        self,
        verb: str,
        *,
        idle: float,
        content: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        **params: str,
    ) -> AsyncGenerator[httpx2.Response]:
        """Stream the answer of one call; `idle` is in seconds. Raises SourceFailed, NetworkRefused."""
        timeout = httpx2.Timeout(idle, connect=CONNECT_SECONDS)
        try:
            async with (
                httpx2.AsyncClient(timeout=timeout, verify=self._trust, trust_env=False) as client,
                client.stream(
                    "POST",
                    f"{self._url}/api/v0/{verb}",
                    params=params,
                    content=content,
                    headers={**self._headers(), **(headers or {})},
                ) as response,
            ):
                if not response.is_success:
                    raise NetworkRefused(await _reason(response))
                yield response
        except httpx2.HTTPError as error:
            raise SourceFailed(f"{verb}: {describe_network_error(error)}") from None

    async def call(
        self,
        verb: str,
        *,
        idle: float,
        content: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        **params: str,
    ) -> Sequence[Mapping[str, Any]]:
        """Return the last JSON objects of an answer. Raises SourceFailed, and NetworkRefused also for a late error."""
        objects: deque[Mapping[str, Any]] = deque(maxlen=_LAST_OBJECTS)
        async with self.post(verb, idle=idle, content=content, headers=headers, **params) as response:
            rest = b""
            async for piece in response.aiter_bytes():
                *whole, rest = (rest + piece).split(b"\n")
                if len(rest) > _MAX_LINE:
                    raise SourceFailed(f"{verb}: a line exceeds {_MAX_LINE} bytes")
                objects.extend(_object(line) for line in whole if line)
            if rest:
                objects.append(_object(rest))
        return tuple(objects)

    def _headers(self) -> Mapping[str, str]:
        headers = {"User-Agent": "roost", "Accept-Encoding": "identity"}
        if self._credential is None:
            return headers
        kind, _, secret = self._credential.reveal().partition(":")
        if kind == "basic":
            return {**headers, "Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
        return {**headers, "Authorization": f"Bearer {secret}"}


async def _reason(response: httpx2.Response) -> str:
    """Return the message of an error body: `{"Message": ...}`, or its first characters."""
    text = b""
    async for piece in response.aiter_bytes():
        text += piece
        if len(text) > _MAX_LINE:
            break
    try:
        return str(json.loads(text)["Message"])[:_MAX_ERROR]
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"{response.status_code} {text[:_MAX_ERROR].decode(errors='replace').strip()}"


def _object(line: bytes) -> Mapping[str, Any]:
    found = parse_json(line)
    if not isinstance(found, dict):
        raise SourceFailed("The node's answer is not a JSON object")
    answer = as_object(found)
    if answer.get("Type") == "error":
        raise NetworkRefused(str(answer.get("Message"))[:_MAX_ERROR])
    return answer


class KuboNetwork(PublicNetwork, NetworkAnnouncer):
    def __init__(
        self,
        url: str,
        credential: Sensitive[str] | None,
        http: PublicNetwork,
        locate: Locate,
        admits: Callable[[Address], bool],
        *,
        idle: float = IDLE_SECONDS,
    ) -> None:
        """`http` asks host nodes with HTTP; `admits` selects the addresses of the node that are published."""
        self._rpc = KuboRpc(url, credential)
        self._http = http
        self._locate = locate
        self._admits = admits
        self._idle = idle
        self._cached_addresses: Sequence[str] = ()
        self._addresses_expire_at = 0.0

    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:
        return (*self._http.sources(hosts), _KuboSource(self._rpc, self._locate, hosts, self._idle))

    async def has(self, cid: str) -> bool:
        try:
            await self._rpc.call("pin/ls", idle=ANSWER_SECONDS, arg=cid, type="recursive")
        except NetworkRefused as refused:
            if _is_not_pinned(refused):
                return False
            raise
        return True

    async def announce(self, cid: str, car: Callable[[], AsyncGenerator[bytes]]) -> None:
        try:
            async with asyncio.timeout(MAX_ANNOUNCE_SECONDS):
                if not await self.has(cid):
                    await self._import_car(cid, car())
                await self._rpc.call("routing/provide", idle=SLOW_SECONDS, arg=cid)
        except TimeoutError:
            raise SourceFailed("The node is too slow") from None

    async def withdraw(self, cid: str) -> None:
        try:
            await self._rpc.call("pin/rm", idle=SLOW_SECONDS, arg=cid)
        except NetworkRefused as refused:
            if not _is_not_pinned(refused):
                raise

    async def addresses(self) -> Sequence[str]:
        if clock.monotonic_seconds() >= self._addresses_expire_at:
            self._cached_addresses = await self._read_addresses()
            self._addresses_expire_at = clock.monotonic_seconds() + _CACHE_SECONDS
        return self._cached_addresses

    async def _import_car(self, cid: str, car: AsyncGenerator[bytes]) -> None:
        boundary = ids.random_bytes(16).hex()  # random, so that content cannot contain it
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        async with aclosing(car), aclosing(_multipart_form(car, boundary)) as body:
            lines = await self._rpc.call(
                "dag/import", idle=SLOW_SECONDS, content=body, headers=headers, **{"pin-roots": "true"}
            )
        if [root for line in lines if (root := _parse_root(line))] != [cid]:
            raise NetworkRefused("The node did not pin the imported content")

    async def _read_addresses(self) -> Sequence[str]:
        try:
            match await self._rpc.call("id", idle=INTERACTIVE_SECONDS):
                case [{"Addresses": [*addresses]}]:
                    found = [one for one in cast("list[object]", addresses) if isinstance(one, str)]
                case _:
                    found = list[str]()
        except Problem as problem:
            _log.warning("network.no_addresses", reason=problem.message)
            return ()
        return [one for one in found if self._is_published(one)][:_MAX_ADDRESSES]

    def _is_published(self, address: str) -> bool:
        if "/p2p/" not in address:
            return False
        found = _IP_ADDRESS.match(address)
        ip = parse_address(found[1]) if found else None
        return found is None or (ip is not None and self._admits(ip))


async def kubo_version(url: str, credential: Sensitive[str] | None) -> str:
    """Return the version of a kubo node. Raises SourceFailed, NetworkRefused."""
    match await KuboRpc(url, credential).call("version", idle=INTERACTIVE_SECONDS):
        case [{"Version": str(version)}]:
            return version
        case _:
            raise NetworkRefused("The node did not return its version")


class _KuboSource(ContentSource):
    def __init__(self, rpc: KuboRpc, locate: Locate, hosts: Sequence[str], idle: float) -> None:
        super().__init__("kubo")
        self._rpc = rpc
        self._locate = locate
        self._hosts = hosts[:_MAX_PEERS]
        self._idle = idle

    async def car(self, cid: str) -> AsyncGenerator[bytes]:
        await asyncio.gather(*map(self._connect, self._hosts))
        began = False
        try:
            async with self._rpc.post("dag/export", idle=self._idle, arg=cid, progress="false") as response:
                async for piece in response.aiter_raw():
                    began = True
                    yield piece
        except NetworkRefused as refused:
            raise SourceFailed(refused.message) from None
        except SourceFailed as failed:
            if began or not isinstance(failed.__context__, httpx2.ReadTimeout):
                raise
            raise ContentNotAtSource("No peer provided the content in time") from None

    async def _connect(self, host: str) -> None:
        """Connect the node to a peer by the first address that works; failures are only logged."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                for address in await self._resolve_peer(host):
                    try:
                        await self._rpc.call("swarm/connect", idle=ANSWER_SECONDS, arg=address)
                        return
                    except (NetworkRefused, SourceFailed) as failed:
                        _log.info("network.peer_not_reached", host=address, reason=failed.message)
        except (Problem, TimeoutError) as error:
            _log.info("network.peer_not_reached", host=host, reason=str(error) or "too slow")

    async def _resolve_peer(self, host: str) -> Sequence[str]:
        """Return the peer's multiaddrs with admitted IP addresses instead of a name; empty for other protocols."""
        found = _PEER.fullmatch(host) if len(host) <= HOST_LIMIT else None
        if found is None:
            return ()
        name, transport, port, suffix = found[1], found[2] or found[5], found[3] or found[6], found[4] or found[7]
        addresses, at = await self._locate(name, int(port))
        return [f"/ip{one.version}/{one}/{transport}/{at}{suffix or ''}{found[8]}" for one in addresses]


async def _multipart_form(car: AsyncIterator[bytes], boundary: str) -> AsyncGenerator[bytes]:
    head = 'Content-Disposition: form-data; name="file"; filename="a.car"\r\nContent-Type: application/octet-stream'
    yield f"--{boundary}\r\n{head}\r\n\r\n".encode()
    async for piece in car:
        yield piece
    yield f"\r\n--{boundary}--\r\n".encode()


def _parse_root(line: object) -> str | None:
    """Return the pinned root in a line of `dag/import`, if it has one. Raises NetworkRefused."""
    match line:
        case {"Root": {"PinErrorMsg": str(wrong)}} if wrong:
            raise NetworkRefused(wrong)
        case {"Root": {"Cid": {"/": str(cid)}}}:
            return cid
        case _:
            return None


def _is_not_pinned(refused: NetworkRefused) -> bool:
    return "not pinned" in refused.message
