"""The URL map: one row for each family of paths. No other module compares a path with a prefix of an API.

The first matching row counts; `web/url_rule.py` explains its fields.
"""

from functools import partial

from roost.agents.files.errors import WorkspaceFileTooLarge
from roost.web.url_rule import BodyLimit, ErrorForm, HostKind, UrlFamily, UrlRule

PUBLIC_CONTENT, PRIVATE_CONTENT, PAID_CONTENT = "/ipfs/", "/files/", "/x402/cid/"
"""Path prefixes of content on storage gateways."""

_MIB = 1024**2
_UPLOAD = BodyLimit(size=None, values=None)
_SIGN_IN = BodyLimit(size=16 * 1024)
_VERDICT_TARGETS = BodyLimit(size=64 * 1024)
_MODEL_BODY = BodyLimit(size=32 * _MIB, values=None)
_WORKSPACE_FILE = BodyLimit(size=16 * _MIB, message=WorkspaceFileTooLarge.message)
_SKILL = BodyLimit(size=12 * _MIB, uncounted=frozenset({b"multipart/form-data", b"application/zip"}))
_SKILL_FILE = BodyLimit(size=10 * _MIB, values=None)
_GIT_BODY = BodyLimit(size=None, values=None, codings=frozenset({b"identity", b"gzip", b"x-gzip"}))
_ANY_JSON = BodyLimit(size=10 * _MIB, values=None)

_SIGNED_UPLOAD = "/v3/files/[0-9a-fA-F-]{32,36}"
_UPLOAD_IN_PARTS = f"{_SIGNED_UPLOAD}/[0-9a-fA-F]+"
_OWN_AGENT = ("/v0", "/v0/agents/{agent}")
_OLD_HUB = dict.fromkeys(HostKind, ("/v0/clawhub", "/v0/hub"))
"""The name that the reference service gives the hub."""
_ON_AGENT = {HostKind.AGENT: _OWN_AGENT}
_ON_AGENT_AND_RELAY = {HostKind.AGENT: _OWN_AGENT, HostKind.RELAY: _OWN_AGENT}

_ALL = frozenset(HostKind) - {HostKind.STORAGE_GATEWAY, HostKind.DOMAIN}
_MANAGED = frozenset({HostKind.LOCAL, HostKind.MANAGEMENT})
_agents = partial(UrlRule, family=UrlFamily.AGENTS, hosts=_ALL, authenticates_early=True)
_registry = partial(_agents, hosts=frozenset({HostKind.LOCAL, HostKind.MANAGEMENT, HostKind.RELAY}))
_models = partial(_agents, family=UrlFamily.MODELS, errors=ErrorForm.OPENAI, body=_MODEL_BODY)
_git = partial(
    UrlRule,
    family=UrlFamily.GIT,
    hosts=frozenset({HostKind.LOCAL, HostKind.MANAGEMENT, HostKind.AGENT}),
    body=_GIT_BODY,
    authenticates_early=True,
)
_storage = partial(UrlRule, family=UrlFamily.STORAGE, errors=ErrorForm.STORAGE, authenticates_early=True)
_signed = partial(_storage, allows_cors=True, body=_UPLOAD, authenticates_early=False)  # the URL is the credential
_vectors = partial(_storage, hosts=UrlRule().hosts | {HostKind.RELAY})  # of groups that were granted to the agent
_legacy = partial(_storage, errors=ErrorForm.LEGACY)
_gateway = partial(UrlRule, hosts=frozenset({HostKind.STORAGE_GATEWAY}))

DASHBOARD = UrlRule("/.*", UrlFamily.DASHBOARD, hosts=_MANAGED, needs_dashboard=True)
CONTENT = _gateway("/(ipfs|files|x402/cid)/.*", UrlFamily.CONTENT)
URL_MAP = (
    UrlRule("/v0|/v0/issues(/.*)?", hosts=frozenset()),  # the contract closes issues to all callers
    _models("/v1(/.*)?", hosts=frozenset({HostKind.RELAY}), aliases={HostKind.RELAY: ("/v1", "/v0/llm/v1")}),
    _models("/v0/llm(/.*)?"),
    _agents("/v0/agents/[^/]+/files/upload", body=_WORKSPACE_FILE),
    _agents("/v0/files/upload", body=_WORKSPACE_FILE, aliases=_ON_AGENT),
    _agents("/v0/agents/[^/]+/files/content", methods=frozenset({"PUT"}), body=_UPLOAD),
    _agents("/v0/files/content", methods=frozenset({"PUT"}), body=_UPLOAD, aliases=_ON_AGENT),
    _agents("/v0/agents/import", methods=frozenset({"POST"}), body=_UPLOAD),
    _git("/v0/agents/[^/]+/git/.*"),
    _git("/v0/git/.*", aliases=_ON_AGENT),
    _agents("/v0/agents/[^/]+", methods=frozenset({"DELETE"}), session_role="owner"),
    # What reveals the agent's token, runs commands, or copies all of the agent, also by GET or a WebSocket.
    _agents("/v0/agents/[^/]+/(gateway-token|sign-in-link|export|console/.*)", session_role="editor"),
    _agents("/v0/agents/[^/]+/model-server", methods=frozenset({"PUT"}), session_role="owner"),
    _agents("/v0/agents(/.*)?"),
    UrlRule(
        "/v0/session", UrlFamily.AGENTS, hosts=_MANAGED, body=_SIGN_IN, needs_dashboard=True
    ),  # the body or the cookie counts
    _agents("/v0/session/(all|links)", hosts=_MANAGED, session_role="owner"),
    _agents("/v0/system(/.*)?", hosts=_MANAGED, session_role="owner"),
    _agents("/v0/(public-)?templates(/.*)?"),  # no agent has any of its own
    _agents("/v0/platform/.*|/v0/status", aliases=_ON_AGENT_AND_RELAY),
    _agents("/v0/skills", methods=frozenset({"POST"}), body=_SKILL, aliases=_ON_AGENT),
    _agents("/v0/skills/[^/]+/versions", body=_SKILL),  # no agent has versions of its own
    _agents("/v0/hub(/.*)?"),
    _agents("/v0/clawhub(/.*)?", aliases=_OLD_HUB),
    _agents("/v0/sign-in", hosts=frozenset({HostKind.AGENT})),  # sets the cookie of the agent's address
    _agents("/v0/.*", aliases=_ON_AGENT),
    _registry("/api/v1/uploads/[^/]+", body=_SKILL_FILE),
    _registry("/api/v1/skills", methods=frozenset({"POST"}), body=_SKILL),
    _registry("/api/v1/whoami"),
    _registry("/api/v1/skills/-/security-verdicts", authenticates_early=False, body=_VERDICT_TARGETS),
    _registry("/api/(v1|cli)/.*", methods=frozenset({"POST", "DELETE"})),
    _registry("/api/(v1|cli)/.*|/.well-known/clawhub.json", authenticates_early=False),  # all of it is published
    _signed(_SIGNED_UPLOAD, methods=frozenset({"POST"})),
    _signed(_UPLOAD_IN_PARTS),
    _storage("/v3/files", allows_cors=True, methods=frozenset({"POST"}), body=_UPLOAD),
    _storage(f"/v3/files|{_SIGNED_UPLOAD}", allows_cors=True),
    _vectors("/v3/vectorize/groups(/[^/]+/files)?", methods=frozenset({"GET"})),
    _vectors("/v3/vectorize/groups/[^/]+/query", methods=frozenset({"POST"})),
    _vectors("/v3/vectorize/files/[^/]+", methods=frozenset({"GET", "POST"})),
    _storage("/v3/pinata/keys(/.*)?", methods=frozenset({"POST", "PUT", "DELETE"}), session_role="owner"),
    _storage("/v3(/.*)?"),
    _legacy("/pinning/pinFileToIPFS", methods=frozenset({"POST"}), body=_UPLOAD),
    _legacy("/pinning/pinJSONToIPFS", body=_ANY_JSON),
    _legacy("/(pinning|data|psa)/.*|/groups(/.*)?"),
    CONTENT,
    _gateway("/|/ipfs|/files|/x402(/cid)?", UrlFamily.CONTENT_INDEX),
    UrlRule("/metrics", hosts=frozenset({HostKind.LOCAL, HostKind.MANAGEMENT}), is_rate_limited=False),
    UrlRule("/tls/permission", hosts=frozenset({HostKind.LOCAL}), is_rate_limited=False),  # Caddy asks, ours or another
    UrlRule("/healthz|/readyz", is_rate_limited=False),
    UrlRule("/openapi|/.well-known/roost"),
    UrlRule("/docs(/.*)?", UrlFamily.DOCS, hosts=_MANAGED, needs_dashboard=True),
    DASHBOARD,  # every path outside the APIs
    UrlRule(),
)
AGENT_ADDRESS_PATHS = {
    "/v0/platform/token": "/v0/agents/{agentId}/platform/token",
    "/v0/logs": "/v0/agents/{agentId}/logs",
}
"""Paths that the contract names at an agent's own address, and what they mean."""


def find_rule(method: str, path: str) -> UrlRule:
    """Return the row of a request."""
    return next(rule for rule in URL_MAP if rule.matches(method, path))


def is_platform_target(target: bytes) -> bool:
    """Return whether a request target on an agent's address is the platform's; all others are the agent's."""
    return target.startswith(b"/v0/") or target.partition(b"?")[0] == b"/v0"
