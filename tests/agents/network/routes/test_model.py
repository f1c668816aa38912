import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agents.network.routes import model
from roost.agents.network.routes.model import AmbiguousPath, InvalidRoutes, PathRoute
from roost.drivers.runtime.contract import WARDEN_PORTS

ROUTES = model.check_routes([PathRoute("/a", 2000), PathRoute("/a/b", 3000, is_protected=False)])


@pytest.mark.parametrize(
    ("text", "prefix"), [("/", ""), ("/a", "/a"), ("/a/", "/a"), ("/v01", "/v01"), ("/~a/b.c", "/~a/b.c")]
)
def test_prefixes_of_routes_are_parsed(text: str, prefix: str) -> None:
    assert model.parse_prefix(text) == prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "//",
        "/a//b",
        "/..",
        "/a/./b",
        "/v0",
        "/v0/",
        "/V0/x",
        "/a?b",
        "/%61",
        "/ä",
        "/a b",
        "/a\n",
        "/" + "a" * 200,
    ],
)
def test_prefixes_that_are_refused(text: str) -> None:
    with pytest.raises(InvalidRoutes):
        model.parse_prefix(text)


@pytest.mark.parametrize("port", [-1, 0, 22, 80, 1024, 18789, 8642, 65536, *WARDEN_PORTS])
def test_ports_that_are_refused(port: int) -> None:
    with pytest.raises(InvalidRoutes):
        model.check_port(port, gateway_port=8642)
    assert model.check_port(1025, gateway_port=8642) == 1025


def test_tables_that_are_refused() -> None:
    with pytest.raises(InvalidRoutes, match="at most 10 routes"):
        model.check_routes([PathRoute(f"/{number}", 2000) for number in range(11)])
    for prefix in ("", "/a"):
        with pytest.raises(InvalidRoutes, match="occurs twice"):
            model.check_routes([PathRoute(prefix, 2000), PathRoute(prefix, 3000)])


@pytest.mark.parametrize(
    ("path", "port"),
    [
        (b"/a", 2000),
        (b"/a/", 2000),
        (b"/a/bc", 2000),
        (b"/a/b", 3000),
        (b"/a/b/c%20d", 3000),
        (b"/ab", None),
        (b"*", None),
    ],
)
def test_the_longest_prefix_counts(path: bytes, port: int | None) -> None:
    found = model.find_route(ROUTES, path)
    assert (found and found.port) == port


def test_a_route_of_all_paths() -> None:
    found = model.find_route([*ROUTES, PathRoute("", 4000)], b"/x")
    assert found
    assert found.port == 4000


@given(
    st.lists(
        st.sampled_from([b"a", b"b", b"c", b"..", b".", b"", b"%2e%2e", b"%62", b"b;x", b"%2f", b"\\"]), max_size=6
    )
)
def test_a_path_with_several_meanings_is_refused(segments: list[bytes]) -> None:
    path = b"/" + b"/".join(segments)
    try:
        found = model.find_route(ROUTES, path)
    except AmbiguousPath:
        return
    plain = model.find_route(ROUTES, _decode(path))
    assert plain == found


def _decode(path: bytes) -> bytes:
    """Resolve a path as a lenient program does."""
    kept: list[bytes] = []
    for segment in (
        path.replace(b"%2e", b".").replace(b"%62", b"b").replace(b"%2f", b"/").replace(b"\\", b"/").split(b"/")
    ):
        name = segment.split(b";")[0]
        if name == b"..":
            kept = kept[:-1]
        elif name not in (b"", b"."):
            kept.append(name)
    return b"/" + b"/".join(kept)
