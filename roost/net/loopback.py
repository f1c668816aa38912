"""Recognise URLs of services on this machine, which no proxy of the environment can reach."""

import httpx2

from roost.net.addresses import is_loopback


def is_loopback_url(url: str) -> bool:
    """Tell whether the URL leads to this machine, by address or as `localhost` (RFC 6761).

    Raises httpx2.InvalidURL.
    """
    host = httpx2.URL(url).host
    return host == "localhost" or host.endswith(".localhost") or is_loopback(host)
