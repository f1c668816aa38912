"""No public network: only content of this server is available."""

from collections.abc import Sequence

from roost.drivers.network.contract import ContentSource, PublicNetwork


class NoNetwork(PublicNetwork):
    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:  # noqa: ARG002 - the contract's signature
        return ()
