"""Old paths of supported clients, the current operations behind them, and the clients that need each.

The list of clients is closed (docs/guides/coming-from-pinata.md). A path is removed with the last client that uses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from roost.storage.content.model import ContentNetwork
from roost.web.url_rule import PathRewrite


class SupportedClient(StrEnum):
    PINATA = "pinata 2.5.6"
    PINATA_1 = "pinata 1.10.1"
    PINATA_WEB3 = "pinata-web3 0.5.4"
    PINATA_SDK = "@pinata/sdk 2.1.0"
    GO = "the Go command line of April 2026"
    PINNING_SERVICE = "IPFS Pinning Service API 1.0.0"


@dataclass(frozen=True)
class OldPath(PathRewrite):
    clients: Sequence[SupportedClient] = ()


_JAVASCRIPT = (SupportedClient.PINATA, SupportedClient.PINATA_1, SupportedClient.PINATA_WEB3)
_BEFORE_V3 = (SupportedClient.PINATA_WEB3, SupportedClient.PINATA_SDK)
_READ = frozenset({"GET", "HEAD"})
_MEMBER = frozenset({"PUT", "DELETE"})
_RECORD = _READ | _MEMBER
_private = partial(OldPath, clients=(SupportedClient.PINATA_1,), network=ContentNetwork.PRIVATE)
_analytics = partial(OldPath, methods=_READ, clients=_JAVASCRIPT)
_public = partial(OldPath, clients=(SupportedClient.PINATA_WEB3,), network=ContentNetwork.PUBLIC)

PATH_REWRITES: Sequence[OldPath] = (
    _private("/v3/files", "/v3/files/{network}", _READ),
    _private("/v3/files/{id:uuid}", "/v3/files/{network}/{id}", _RECORD - {"HEAD"}),  # that is of resumable uploads
    _private("/v3/files/groups", "/v3/groups/{network}", _READ | {"POST"}),
    _private("/v3/files/groups/{id}", "/v3/groups/{network}/{id}", _RECORD),
    _private("/v3/files/groups/{id}/ids/{file_id}", "/v3/groups/{network}/{id}/ids/{file_id}", _MEMBER),
    _private("/v3/files/swap/{cid}", "/v3/files/{network}/swap/{cid}", _RECORD),
    _public("/v3/ipfs/swap/{cid}", "/v3/files/{network}/swap/{cid}", frozenset({"DELETE"})),
    _public("/v3/ipfs/signature/{cid}", "/v3/files/{network}/signature/{cid}", _READ | {"POST", "DELETE"}),
    OldPath("/v3/ipfs/gateways", "/v3/gateways", _READ, clients=(SupportedClient.GO,)),
    _analytics("/v3/ipfs/gateway_analytics_top", "/v3/analytics/gateways/top"),
    _analytics("/v3/ipfs/gateway_analytics_time_series", "/v3/analytics/gateways/time_series"),
)

HANDLED_PATHS: Mapping[str, Sequence[SupportedClient]] = {
    # paths whose requests or responses differ from the current API, with handlers in this package
    "/data/testAuthentication": (*_BEFORE_V3, SupportedClient.GO),
    "/v3/data/testAuthentication": (SupportedClient.PINATA, SupportedClient.PINATA_1),
    "/data/userPinnedDataTotal": _BEFORE_V3,
    "/v3/data/userPinnedDataTotal": (SupportedClient.PINATA,),
    "/data/pinList": _BEFORE_V3,
    "/pinning/pinFileToIPFS": (SupportedClient.PINATA, *_BEFORE_V3, SupportedClient.GO),
    "/pinning/pinJSONToIPFS": _BEFORE_V3,
    "/pinning/pinByHash": _BEFORE_V3,
    "/pinning/pinJobs": _BEFORE_V3,
    "/pinning/hashMetadata": _BEFORE_V3,
    "/pinning/unpin/{cid}": _BEFORE_V3,
    "/groups": (SupportedClient.PINATA_WEB3,),
    "/groups/{id}": (SupportedClient.PINATA_WEB3,),
    "/groups/{id}/cids": (SupportedClient.PINATA_WEB3,),
    "/v3/ipfs/swap/{cid}": (SupportedClient.PINATA_WEB3,),
    "/psa/pins": (SupportedClient.PINNING_SERVICE,),
    "/psa/pins/{requestid}": (SupportedClient.PINNING_SERVICE,),
}
