"""The bounds are the ones that the paper promises."""

from pathlib import Path

import pytest

from roost.hosts.edge.gate import Bounds

PAPER = Path(__file__).parents[3] / "docs" / "agent-host.md"
BOUNDS = Bounds()


@pytest.mark.parametrize(
    "line",
    [
        f"| head of a request, head of an answer | {BOUNDS.head // 1024} KiB |",
        f"| time for a head | {BOUNDS.first_head:.0f} s |",
        f"| unused connection of a client | {BOUNDS.keep_alive} s |",
        f"| requests waiting on one connection | {BOUNDS.pipeline} |",
        f"| connecting to the gateway | {BOUNDS.connect:.0f} s |",
        f"| an upload that does not move | {BOUNDS.body_idle:.0f} s |",
        f"| average of an upload after {BOUNDS.body_grace:.0f} s, before an answer | {BOUNDS.body_rate} bytes/s |",
        f"| taking an answer of the platform | {BOUNDS.taking:.0f} s, at least {BOUNDS.body_rate} bytes/s |",
        f"| waiting for an answer to begin | {BOUNDS.response_head:.0f} s |",
        f"| a stream or WebSocket on which nothing moves | {BOUNDS.idle:.0f} s |",
        f"| connections to one gateway | {BOUNDS.streams} |",
        f"| unused connections kept to one gateway | {BOUNDS.spares}, for {BOUNDS.spare:.0f} s |",
        f"| body that is read off after its request was answered | {BOUNDS.leftover // 1024**2} MiB |",
    ],
)
def test_the_paper_says_what_is_so(line: str) -> None:
    assert line in PAPER.read_text().splitlines()
