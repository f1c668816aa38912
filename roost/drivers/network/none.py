"""No network: content comes from nowhere but this server."""

from collections.abc import Sequence

from roost.drivers.network.contract import ContentSource, PublicNetwork


class NoNetwork(PublicNetwork):
    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:  # noqa: ARG002 - the contract's signature
        return ()
