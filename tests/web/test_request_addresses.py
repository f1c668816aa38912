"""The address of a request: what counts where no router ran."""

from roost.web.url_rule import ErrorForm, HostAddress, HostKind, RequestAddress, UrlRule, address_of, rule_of


def test_a_scope_without_a_row_has_the_defaults() -> None:
    rule = rule_of({"type": "http"})
    assert (rule.errors, rule.body.size, rule.allows_cors) == (ErrorForm.AGENTS, 1024**2, False)
    assert not rule.hosts & {HostKind.AGENT, HostKind.RELAY}
    own = RequestAddress(UrlRule("/a"), HostAddress(HostKind.LOCAL, ""))
    scope = {"type": "http", "state": {"address": own}}
    assert (address_of(scope), rule_of(scope)) == (own, own.rule)
