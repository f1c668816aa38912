import pytest

from roost.identity.auth_request import AuthRequest, check_same_origin
from roost.identity.errors import ForeignOrigin
from roost.web.url_rule import HostAddress, HostKind

OWN = "https://a.agents.example"


def check(method: str, headers: dict[str, str], upgrade: bool = False, is_shared: bool = False) -> None:
    request = AuthRequest(HostAddress(HostKind.AGENT, OWN), method, headers, "", "192.0.2.1", upgrade=upgrade)
    check_same_origin(request, is_shared=is_shared)


@pytest.mark.parametrize("headers", [{}, {"origin": OWN}, {"referer": f"{OWN}/x"}, {"sec-fetch-site": "same-origin"}])
def test_own_pages_may_change_something(headers: dict[str, str]) -> None:
    check("POST", headers)


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
        check("DELETE", headers)
    check("GET", headers)


@pytest.mark.parametrize("headers", [{}, {"referer": OWN}, {"origin": ""}, {"origin": f"{OWN}:443"}])
def test_websockets_need_the_own_origin(headers: dict[str, str]) -> None:
    with pytest.raises(ForeignOrigin):
        check("GET", headers, upgrade=True)
    check("GET", {"origin": OWN, "sec-fetch-site": "cross-site"}, upgrade=True)


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
    check("GET", headers)
    if is_admitted:
        check("GET", headers, is_shared=True)
        return
    with pytest.raises(ForeignOrigin):
        check("GET", headers, is_shared=True)
