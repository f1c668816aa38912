"""Cookies of agents that have ports instead of names. Pure.

Browsers send the cookies of a host to all of its ports (RFC 6265, 8.5), so the names of each port's cookies get a
prefix, and neither an agent nor its programs get the cookies of another one.
"""

from roost.http.server.request_head import Headers


def select_cookies(headers: Headers, prefix: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request with the cookies of one port alone, under the names that its agent knows."""
    start = prefix.encode()
    selected: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name != b"cookie":
            selected.append((name, value))
            continue
        own = [pair.strip().removeprefix(start) for pair in value.split(b";") if pair.strip().startswith(start)]
        if own:
            selected.append((name, b"; ".join(own)))
    return selected
