"""Which requests use a sign-in link up."""

import pytest

from roost.agents.network.sign_in.model import is_navigation

PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
CLICK = PAGE | {"sec-fetch-mode": "navigate"}


@pytest.mark.parametrize(
    ("headers", "secure", "counts"),
    [
        (CLICK, True, True),
        (CLICK, False, True),
        (PAGE, False, True),
        (PAGE, True, False),
        ({}, False, False),
        ({"accept": "*/*", "sec-fetch-mode": "navigate"}, True, False),
        (PAGE | {"sec-fetch-mode": "cors"}, False, False),
        (PAGE | {"sec-fetch-mode": "no-cors"}, True, False),
        (CLICK | {"sec-purpose": "prefetch;prerender"}, True, False),
        (CLICK | {"purpose": "prefetch"}, False, False),
    ],
)
def test_only_a_navigation_counts(headers: dict[str, str], secure: bool, counts: bool) -> None:
    assert is_navigation(headers, secure=secure) is counts
