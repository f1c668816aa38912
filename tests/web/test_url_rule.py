"""One row of the URL map: what it matches."""

import pytest

from roost.web.url_rule import UrlRule


@pytest.mark.parametrize(
    ("method", "path", "matches"),
    [("POST", "/a/b", True), ("GET", "/a/b", False), ("POST", "/a/b/", False), ("POST", "/x/a/b", False)],
)
def test_a_row_is_for_whole_paths_and_its_methods(method: str, path: str, matches: bool) -> None:
    assert UrlRule("/a/b", methods=frozenset({"POST"})).matches(method, path) is matches


def test_a_row_without_methods_is_for_all() -> None:
    assert all(UrlRule("/.*").matches(method, "/a\nb") for method in ("GET", "PATCH"))
