"""Old paths of supported clients, the current operations behind them, and the clients that need each.

The list of clients is closed (docs/guides/coming-from-pinata.md). A path is removed with the last client that uses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from roost.storage.content.model import ContentNetwork


class SupportedClient(StrEnum):
    PINATA = "pinata 2.5.6"
    PINATA_1 = "pinata 1.10.1"
    PINATA_WEB3 = "pinata-web3 0.5.4"
    PINATA_SDK = "@pinata/sdk 2.1.0"
    GO = "the Go command line of April 2026"
    PINNING_SERVICE = "IPFS Pinning Service API 1.0.0"


@dataclass(frozen=True)
class PathRewrite:
    """Old path of a current operation, with the methods that it accepts.

    network: the value of `{network}` in the current path. response_names: new names of fields in the response.
    """

    methods: Sequence[str]
    path: str
    current: str
    clients: Sequence[SupportedClient]
    network: ContentNetwork | None = None
    response_names: Mapping[str, str] = field(default_factory=dict[str, str])

    def current_path(self, parameters: Mapping[str, object]) -> str:
        """Fill the current path with the values from the old one."""
        return self.current.format(network=self.network, **parameters)


_JAVASCRIPT = (SupportedClient.PINATA, SupportedClient.PINATA_1, SupportedClient.PINATA_WEB3)
_BEFORE_V3 = (SupportedClient.PINATA_WEB3, SupportedClient.PINATA_SDK)
_RECORD_METHODS = ("GET", "PUT", "DELETE")
_private = partial(PathRewrite, clients=(SupportedClient.PINATA_1,), network=ContentNetwork.PRIVATE)
_public = partial(PathRewrite, clients=(SupportedClient.PINATA_WEB3,), network=ContentNetwork.PUBLIC)

PATH_REWRITES: Sequence[PathRewrite] = (
    _private(("GET",), "/v3/files", "/v3/files/{network}"),
    _private(_RECORD_METHODS, "/v3/files/{id:uuid}", "/v3/files/{network}/{id}"),
    _private(("GET", "POST"), "/v3/files/groups", "/v3/groups/{network}"),
    _private(_RECORD_METHODS, "/v3/files/groups/{id}", "/v3/groups/{network}/{id}"),
    _private(("PUT", "DELETE"), "/v3/files/groups/{id}/ids/{file_id}", "/v3/groups/{network}/{id}/ids/{file_id}"),
    _private(_RECORD_METHODS, "/v3/files/swap/{cid}", "/v3/files/{network}/swap/{cid}"),
    _public(
        _RECORD_METHODS,
        "/v3/ipfs/swap/{cid}",
        "/v3/files/{network}/swap/{cid}",
        response_names={"mapped_cid": "mappedCid", "created_at": "createdAt"},
    ),
    _public(("GET", "POST", "DELETE"), "/v3/ipfs/signature/{cid}", "/v3/files/{network}/signature/{cid}"),
    PathRewrite(("GET",), "/v3/ipfs/gateways", "/v3/gateways", (SupportedClient.GO,)),
    PathRewrite(("GET",), "/v3/ipfs/gateway_analytics_top", "/v3/analytics/gateways/top", _JAVASCRIPT),
    PathRewrite(("GET",), "/v3/ipfs/gateway_analytics_time_series", "/v3/analytics/gateways/time_series", _JAVASCRIPT),
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
    "/psa/pins": (SupportedClient.PINNING_SERVICE,),
    "/psa/pins/{requestid}": (SupportedClient.PINNING_SERVICE,),
}
