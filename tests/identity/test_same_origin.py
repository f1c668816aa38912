import pytest

from roost.identity.errors import ForeignOrigin
from roost.identity.same_origin import check_same_origin

OWN = "https://a.agents.example"


@pytest.mark.parametrize("headers", [{}, {"origin": OWN}, {"referer": f"{OWN}/x"}, {"sec-fetch-site": "same-origin"}])
def test_own_pages_may_change_something(headers: dict[str, str]) -> None:
    check_same_origin("POST", headers, OWN, upgrade=False)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": OWN, "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "referer": OWN},
        {"referer": f"{OWN}.evil.example/"},
        {"origin": "https://b.agents.example", "referer": f"{OWN}/"},
    ],
)
def test_other_pages_may_only_read(headers: dict[str, str]) -> None:
    with pytest.raises(ForeignOrigin):
        check_same_origin("DELETE", headers, OWN, upgrade=False)
    check_same_origin("GET", headers, OWN, upgrade=False)


@pytest.mark.parametrize("headers", [{}, {"referer": OWN}, {"origin": ""}, {"origin": f"{OWN}:443"}])
def test_websockets_need_the_own_origin(headers: dict[str, str]) -> None:
    with pytest.raises(ForeignOrigin):
        check_same_origin("GET", headers, OWN, upgrade=True)
    check_same_origin("GET", {"origin": OWN, "sec-fetch-site": "cross-site"}, OWN, upgrade=True)


SAME_SITE = {"sec-fetch-site": "same-site"}


@pytest.mark.parametrize(
    ("headers", "is_admitted"),
    [
        ({}, True),
        ({"origin": OWN}, True),
        ({"origin": f"{OWN}:444"}, False),
        ({"sec-fetch-site": "none"}, True),
        (SAME_SITE, False),
        (SAME_SITE | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, True),
        (SAME_SITE | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, False),
    ],
)
def test_of_a_shared_cookie_only_own_pages_and_links_read(headers: dict[str, str], is_admitted: bool) -> None:
    check_same_origin("GET", headers, OWN, upgrade=False)
    if is_admitted:
        check_same_origin("GET", headers, OWN, upgrade=False, is_shared=True)
        return
    with pytest.raises(ForeignOrigin):
        check_same_origin("GET", headers, OWN, upgrade=False, is_shared=True)
