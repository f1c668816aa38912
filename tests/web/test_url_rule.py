"""One row of the URL map: what it matches, and what counts where there is none."""

import pytest

from roost.web.url_rule import ErrorForm, HostKind, UrlRule, rule_of


@pytest.mark.parametrize(
    ("method", "path", "matches"),
    [("POST", "/a/b", True), ("GET", "/a/b", False), ("POST", "/a/b/", False), ("POST", "/x/a/b", False)],
)
def test_a_row_is_for_whole_paths_and_its_methods(method: str, path: str, matches: bool) -> None:
    assert UrlRule("/a/b", methods=frozenset({"POST"})).matches(method, path) is matches


def test_a_row_without_methods_is_for_all() -> None:
    assert all(UrlRule("/.*").matches(method, "/a\nb") for method in ("GET", "PATCH"))


def test_a_scope_without_a_row_has_the_defaults() -> None:
    rule = rule_of({"type": "http"})
    assert (rule.errors, rule.body.size, rule.allows_cors) == (ErrorForm.AGENTS, 1024**2, False)
    assert not rule.hosts & {HostKind.AGENT, HostKind.RELAY}
    own = UrlRule("/a")
    assert rule_of({"type": "http", "state": {"url_rule": own}}) is own
