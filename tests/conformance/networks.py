"""Networks under test, and content for them."""

import ipaddress
from collections.abc import Sequence
from contextlib import aclosing

import httpx2

from roost.core.sensitive import Sensitive
from roost.drivers.network.contract import ContentNotAtSource, ContentSource
from roost.drivers.network.kubo import KuboNetwork
from roost.drivers.network.trustless import TrustlessNetwork
from roost.net.addresses import Address
from roost.storage.content.unixfs.profile import V1
from tests.storage.cars import encode_car, folder_of_files

CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
CAR = bytes(range(256)) * 1000
ELSEWHERE = "/dns4/peer.example/tcp/4001/p2p/12D3KooWA"
NOWHERE = "http://127.0.0.1:9"
FOLDER, BLOCKS = folder_of_files(V1)
FOLDER_CAR = encode_car([FOLDER], BLOCKS)


def trustless_network(*urls: str, idle: float = 5.0) -> TrustlessNetwork:
    return TrustlessNetwork(urls, httpx2.AsyncHTTPTransport, idle=idle)


async def locate(host: str, port: int) -> tuple[Sequence[Address], int]:
    """Resolve IP addresses, but no names."""
    try:
        return [ipaddress.ip_address(host)], port
    except ValueError:
        raise ContentNotAtSource from None


def kubo_network(url: str, credential: str = "", idle: float = 5.0) -> KuboNetwork:
    secret = Sensitive(credential) if credential else None
    return KuboNetwork(url, secret, trustless_network(), locate, lambda _: True, idle=idle)


async def read(source: ContentSource, cid: str = CID) -> bytes:
    async with aclosing(source.car(cid)) as pieces:
        return b"".join([piece async for piece in pieces])
