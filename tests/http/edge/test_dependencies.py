"""The limits of the edge are the documented ones."""

from pathlib import Path

import pytest

from roost.http.edge.dependencies import ProxyLimits
from roost.http.server.request_head import MAX_HEADERS

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "agent-address.md"
BOUNDS = ProxyLimits()


@pytest.mark.parametrize(
    "line",
    [
        f"| head of a request or response | {BOUNDS.head // 1024} KiB |",
        f"| header fields of a request | {MAX_HEADERS} |",
        f"| time for a head | {BOUNDS.first_head:.0f} s |",
        f"| idle client connection | {BOUNDS.keep_alive} s |",
        f"| pipelined requests on one connection | {BOUNDS.pipeline} |",
        f"| connecting to the gateway | {BOUNDS.connect:.0f} s |",
        f"| stalled upload | {BOUNDS.body_idle:.0f} s |",
        f"| upload speed after {BOUNDS.body_grace:.0f} s, before a response | {BOUNDS.body_rate} bytes/s |",
        f"| client reading a response of `/v0` | {BOUNDS.taking:.0f} s, at least {BOUNDS.body_rate} bytes/s |",
        f"| waiting for a response to begin | {BOUNDS.response_head:.0f} s |",
        f"| idle stream or WebSocket | {BOUNDS.idle:.0f} s |",
        f"| connections of one client, unless it is here or in `trusted_proxies` | {BOUNDS.peer_connections} |",
        f"| connections of all clients | {BOUNDS.connections} |",
        f"| connections to one gateway | {BOUNDS.streams} |",
        f"| idle connections kept to one gateway | {BOUNDS.spares}, for {BOUNDS.spare:.0f} s |",
        f"| body discarded after its request was answered | {BOUNDS.leftover // 1024**2} MiB |",
    ],
)
def test_the_page_states_each_limit(line: str) -> None:
    assert line in PAGE.read_text().splitlines()
