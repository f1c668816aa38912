"""The URL map: one row for each family of paths. No other module compares a path with a prefix of an API.

The first matching row counts; `web/url_rule.py` explains its fields. Rows that declare rights name each path, so that a
new operation has none until its row is written; short paths of an agent's address have the rights of their full ones.
"""

import re
from collections.abc import Mapping
from functools import partial

from roost.agents.workspace.files.model import WorkspaceFileTooLarge
from roost.core.right import Right
from roost.storage.compat.paths import PATH_REWRITES
from roost.storage.files.tus.model import PROTOCOL_HEADERS
from roost.web.url_rule import WEBSOCKET, BodyLimit, ErrorForm, HostKind, PathRewrite, UrlFamily, UrlRule

PUBLIC_CONTENT, PRIVATE_CONTENT, PAID_CONTENT = "/ipfs/", "/files/", "/x402/cid/"
"""Path prefixes of content on storage gateways."""

_MIB = 1024**2
_UPLOAD = BodyLimit(size=None, values=None)
_SIGN_IN = BodyLimit(size=16 * 1024)
_VERDICT_TARGETS = BodyLimit(size=64 * 1024)
_MODEL_BODY = BodyLimit(size=32 * _MIB, values=None)
_WORKSPACE_FILE = BodyLimit(size=16 * _MIB, message=WorkspaceFileTooLarge.message)
_CONFIG = BodyLimit(size=4 * _MIB)  # of 512 KiB, whose bytes take up to six characters in JSON
_SKILL = BodyLimit(size=12 * _MIB, uncounted=frozenset({b"multipart/form-data", b"application/zip"}))
_SKILL_FILE = BodyLimit(size=10 * _MIB, values=None)
_GIT_BODY = BodyLimit(size=None, values=None, codings=frozenset({b"identity", b"gzip", b"x-gzip"}))
_ANY_JSON = BodyLimit(size=10 * _MIB, values=None)

_SIGNED_UPLOAD = "/v3/files/[0-9a-fA-F-]{32,36}"
_UPLOAD_IN_PARTS = f"{_SIGNED_UPLOAD}/[0-9a-fA-F]+"
_ID = "[^/]+"
_AGENT = f"/v0/agents/{_ID}"
_AGENT_TARGET = re.compile(rb"/v0/agents/([a-z0-9]{1,63})(?:[/?]|$)")
_UPLOAD_TARGET = re.compile(rb"/v3/files/[0-9a-f-]{36}/([0-9a-f]{64})(?:[?]|$)")
_own_agent = partial(PathRewrite, "/v0/{rest:path}", "/v0/agents/{agent}/{rest}")
_ON_AGENT = (_own_agent(hosts=frozenset({HostKind.AGENT})),)
_ON_AGENT_AND_RELAY = (_own_agent(hosts=frozenset({HostKind.AGENT, HostKind.RELAY})),)
_OLD_HUB = (PathRewrite("/v0/clawhub{rest:path}", "/v0/hub{rest}"),)
"""The name that the reference service gives the hub."""

_Rights = Mapping[str, Right]
_READS: _Rights = {"GET": Right.READ, WEBSOCKET: Right.READ}
_CHANGES: _Rights = {**_READS, **dict.fromkeys(("POST", "PUT", "PATCH", "DELETE"), Right.WRITE)}
_NONE, _ONLY_READS, _RUNS, _CREDENTIALS, _MANAGES = (
    dict.fromkeys((*_CHANGES, "OPTIONS"), right)
    for right in (Right.NONE, Right.READ, Right.EXECUTE, Right.CREDENTIAL, Right.MANAGE)
)

_ALL = frozenset(HostKind) - {HostKind.STORAGE_GATEWAY, HostKind.DOMAIN}
_MANAGED = frozenset({HostKind.LOCAL, HostKind.MANAGEMENT})
_agents = partial(UrlRule, family=UrlFamily.AGENTS, hosts=_ALL, authenticates_early=True)
_registry = partial(_agents, hosts=frozenset({HostKind.LOCAL, HostKind.MANAGEMENT, HostKind.RELAY}))
_published = partial(_registry, authenticates_early=False)
_models = partial(_agents, family=UrlFamily.MODELS, errors=ErrorForm.OPENAI, body=_MODEL_BODY)
_git = partial(
    UrlRule,
    family=UrlFamily.GIT,
    hosts=frozenset({HostKind.LOCAL, HostKind.MANAGEMENT, HostKind.AGENT}),
    body=_GIT_BODY,
    authenticates_early=True,
)
_storage = partial(UrlRule, family=UrlFamily.STORAGE, errors=ErrorForm.STORAGE, authenticates_early=True)
_tus = partial(_storage, allows_cors=True, response_headers=PROTOCOL_HEADERS, allows_method_override=True)
_signed = partial(_tus, body=_UPLOAD, authenticates_early=False)  # the URL is the credential
_vectors = partial(_storage, hosts=UrlRule().hosts | {HostKind.RELAY})  # of groups that were granted to the agent
_legacy = partial(_storage, errors=ErrorForm.LEGACY)
_open = partial(UrlRule, rights=_NONE)
_gateway = partial(UrlRule, hosts=frozenset({HostKind.STORAGE_GATEWAY}))

DASHBOARD = UrlRule("/.*", UrlFamily.DASHBOARD, hosts=_MANAGED, needs_dashboard=True)
CONTENT = _gateway("/(ipfs|files|x402/cid)/.*", UrlFamily.CONTENT)
URL_MAP = (
    CONTENT,
    _gateway("/|/ipfs|/files|/x402(/cid)?", UrlFamily.CONTENT_INDEX),
    UrlRule("/v0|/v0/issues(/.*)?", hosts=frozenset()),  # the contract closes issues to all callers
    _models(
        "/v1(/.*)?",
        hosts=frozenset({HostKind.RELAY}),
        rewrites=(PathRewrite("/v1{rest:path}", "/v0/llm/v1{rest}"),),
        slash_segment=3,
    ),
    _models("/v0/llm/v1/models(/.*)?", rights=_READS, slash_segment=5),
    _models("/v0/llm/v1/(chat/completions|responses|embeddings)", rights=_RUNS),
    _models("/v0/llm(/.*)?"),
    _agents(f"{_AGENT}/files/upload", body=_WORKSPACE_FILE, rights=_CHANGES),
    _agents("/v0/files/upload", body=_WORKSPACE_FILE, rewrites=_ON_AGENT),
    _agents(f"{_AGENT}/files/content", methods=frozenset({"PUT"}), body=_UPLOAD, rights=_CHANGES),
    _agents("/v0/files/content", methods=frozenset({"PUT"}), body=_UPLOAD, rewrites=_ON_AGENT),
    _agents("/v0/agents/import", methods=frozenset({"POST"}), body=_UPLOAD, rights=_CHANGES),
    _git(f"{_AGENT}/git/(info/refs|git-upload-pack)", rights=_ONLY_READS),
    _git(f"{_AGENT}/git/git-receive-pack", rights=_CHANGES),
    _git(f"{_AGENT}/git/.*"),
    _git("/v0/git/.*", rewrites=_ON_AGENT),
    _agents("/v0/agents", rights=_CHANGES),
    _agents("/v0/agents/(engines|memory)", methods=frozenset({"GET"}), rights=_READS),
    _agents(_AGENT, rights={**_READS, "DELETE": Right.MANAGE}),
    _agents(f"{_AGENT}/(model-server|move)", rights=_MANAGES),
    _agents(f"{_AGENT}/model-key", rights=_CHANGES),
    _agents(f"{_AGENT}/(gateway-token(/rotate)?|sign-in-link|platform/token|export)", rights=_CREDENTIALS),
    _agents(f"{_AGENT}/devices/(approve-all|{_ID}/approve)", rights=_CREDENTIALS),
    _agents(f"{_AGENT}/(console/(exec|stream)|scripts/retry|tasks/{_ID}/run)", rights=_RUNS),
    _agents(f"{_AGENT}/chat(/(messages|stop))?", rights={**_READS, "POST": Right.EXECUTE}),
    _agents(f"{_AGENT}/(chat/(conversations|answer)|platform/whoami|available-agent-versions)", rights=_READS),
    _agents(f"{_AGENT}/(logs|events|status|usage|models|scripts|devices)", rights=_READS),
    _agents(f"{_AGENT}/(restart|update|port-forwarding|platform/metadata)", rights=_CHANGES),
    _agents(f"{_AGENT}/config(/validate)?", body=_CONFIG, rights=_CHANGES),
    _agents("/v0/config(/validate)?", body=_CONFIG, rewrites=_ON_AGENT),
    _agents(f"{_AGENT}/files(/(list|content|watch|move|folder))?", rights=_CHANGES),
    _agents(f"{_AGENT}/(channels/watch|domains/challenge|skills/updates|snapshots/(sync|reset|diff))", rights=_CHANGES),
    _agents(f"{_AGENT}/skills/{_ID}(/update)?", rights=_CHANGES, slash_segment=5),
    _agents(f"{_AGENT}/(secrets|tasks|channels|domains|skills)(/{_ID})?", rights=_CHANGES),
    _agents(f"{_AGENT}/(tasks/{_ID}/(toggle|runs)|domains/{_ID}/verify)", rights=_CHANGES),
    _agents(f"{_AGENT}/(snapshots(/{_ID}/label)?|channels/{_ID}/pairing/{_ID}/approve)", rights=_CHANGES),
    _agents("/v0/agents(/.*)?"),
    UrlRule(  # the body or the cookie counts
        "/v0/session", UrlFamily.AGENTS, hosts=_MANAGED, body=_SIGN_IN, needs_dashboard=True, rights=_NONE
    ),
    _agents("/v0/session/(all|links)", hosts=_MANAGED, rights=_MANAGES),
    _agents("/v0/system(/(checks|engines))?", hosts=_MANAGED, rights=_MANAGES),
    _agents(f"/v0/keys/{_ID}/token-reads", hosts=_MANAGED, scope="org", rights=_READS),
    _agents(f"/v0/keys/{_ID}/revoke", hosts=_MANAGED, scope="org", rights=_MANAGES),
    _agents("/v0/public-templates", rights=_NONE),
    _agents(f"/v0/templates(/(validate|branches|refs|id/{_ID}))?", rights=_CHANGES),
    _agents(f"/v0/templates/{_ID}", rights=_CHANGES),
    _agents("/v0/(public-)?templates(/.*)?"),  # no agent has any of its own
    _agents("/v0/platform/.*|/v0/status", rewrites=_ON_AGENT_AND_RELAY),
    _agents("/v0/skills", methods=frozenset({"POST"}), body=_SKILL, rewrites=_ON_AGENT, rights=_CHANGES),
    _agents(  # no agent has versions of its own
        f"/v0/skills/{_ID}/versions", body=_SKILL, rights=_CHANGES, slash_segment=3
    ),
    _agents(f"/v0/hub(/{_ID}(/install)?)?", rights=_CHANGES, slash_segment=3),
    _agents(f"/v0/hub/{_ID}/{_ID}", rights=_READS),
    _agents("/v0/hub(/.*)?"),
    _agents("/v0/clawhub(/.*)?", rewrites=_OLD_HUB, slash_segment=3),
    _agents("/v0/sign-in", hosts=frozenset({HostKind.AGENT}), rights=_NONE),  # sets the address's cookie
    _agents(f"/v0/skills/{_ID}(/publish|/update)?", rewrites=_ON_AGENT, rights=_CHANGES, slash_segment=3),
    _agents(f"/v0/(secrets(/{_ID})?|skills)", rewrites=_ON_AGENT, rights=_CHANGES),
    _agents("/v0/(events|usage|model-(servers|providers)|available-agent-versions)", rewrites=_ON_AGENT, rights=_READS),
    _agents("/v0/.*", rewrites=_ON_AGENT),
    _registry("/api/v1/uploads/[^/]+", body=_SKILL_FILE, rights=_CHANGES),
    _registry("/api/v1/skills", methods=frozenset({"POST"}), body=_SKILL, rights=_CHANGES),
    _registry("/api/v1/whoami", rights=_READS),
    _registry("/api/v1/skills/-/security-verdicts", authenticates_early=False, body=_VERDICT_TARGETS, rights=_NONE),
    _registry(f"/api/v1/skills/{_ID}", methods=frozenset({"DELETE"}), rights=_CHANGES, slash_segment=4),
    _registry("/api/(v1/skills/-/upload-url|cli/telemetry/install)", methods=frozenset({"POST"}), rights=_CHANGES),
    _registry("/api/(v1|cli)/.*", methods=frozenset({"POST", "DELETE"})),
    _published("/api/v1/(trending|search|skills|download|resolve)", rights=_NONE),
    _published(
        f"/api/v1/skills/{_ID}(/(install|verify|versions(/{_ID})?|file|scan|moderation))?",
        rights=_NONE,
        slash_segment=4,
    ),
    _published("/.well-known/clawhub.json", rights=_NONE),
    _published("/api/(v1|cli)/.*"),
    _signed(_SIGNED_UPLOAD, methods=frozenset({"POST"}), rights=_NONE),
    _signed(_UPLOAD_IN_PARTS, rights=_NONE),
    _tus("/v3/files", methods=frozenset({"POST"}), body=_UPLOAD, rights=_CHANGES),
    _tus(f"/v3/files|{_SIGNED_UPLOAD}", rights={**_CHANGES, "OPTIONS": Right.NONE}, rewrites=PATH_REWRITES),
    _vectors(f"/v3/vectorize/groups(/{_ID}/files)?", methods=frozenset({"GET"}), rights=_READS),
    _vectors(f"/v3/vectorize/groups/{_ID}/query", methods=frozenset({"POST"}), rights=_ONLY_READS),
    _vectors(f"/v3/vectorize/files/{_ID}", methods=frozenset({"GET", "POST"}), rights=_CHANGES),
    _storage(f"/v3/vectorize/(files/{_ID}|groups/{_ID}/agents(/{_ID})?)", rights=_CHANGES),
    _storage(f"/v3/pinata/keys(/{_ID})?", rights={**_MANAGES, **_READS}),
    _storage("/v3/files/(sign|private/download_link)", methods=frozenset({"POST"}), rights=_CREDENTIALS),
    _storage("/v3/data/testAuthentication", rights=_NONE),
    _storage("/v3/(files/(limits|totals)|data/userPinnedDataTotal)", methods=frozenset({"GET"}), rights=_READS),
    _storage(f"/v3/files/public/pin_by_cid(/{_ID})?", rights=_CHANGES),
    _storage(f"/v3/files/(groups(/{_ID}(/ids/{_ID})?)?|swap/{_ID})", rights=_CHANGES, rewrites=PATH_REWRITES),
    _storage(f"/v3/files/{_ID}(/{_ID}|/(signature|swap)/{_ID})?", rights=_CHANGES),
    _storage(f"/v3/groups/{_ID}(/{_ID}(/ids/{_ID})?)?", rights=_CHANGES),
    _storage(f"/v3/gateways/{_ID}/access_tokens", rights={**_READS, "POST": Right.CREDENTIAL}),
    _storage(f"/v3/gateways/(exists/{_ID}|plugins(/marketplace(/{_ID})?)?)", methods=frozenset({"GET"}), rights=_READS),
    _storage(f"/v3/gateways/plugins/{_ID}(/plugin/{_ID})?", rights=_CHANGES),
    _storage(f"/v3/gateways(/{_ID}(/(ips|hosts|custom_domain(/{_ID}(/verify)?)?))?)?", rights=_CHANGES),
    _storage(f"/v3/gateways/{_ID}/{_ID}(/.+)?", rights=_CHANGES, slash_segment=5),
    _storage(f"/v3/ipfs/((swap|signature)/{_ID}|gateways)", rights=_CHANGES, rewrites=PATH_REWRITES),
    _storage(f"/v3/ipfs/gateway_plugins/{_ID}", rights=_CHANGES),
    _storage("/v3/ipfs/gateway_analytics_(top|time_series)", rights=_READS, rewrites=PATH_REWRITES),
    _storage("/v3/analytics/gateways/(top|time_series)", rights=_READS),
    _storage(f"/v3/x402/(payment_instructions(/{_ID}(/cids(/{_ID})?)?)?|payments(/totals)?)", rights=_CHANGES),
    _storage(f"/v3/webhooks(/{_ID}/rotate_secret)?", rights={**_READS, "POST": Right.CREDENTIAL}),
    _storage(f"/v3/webhooks/{_ID}(/(test|deliveries(/{_ID}/redeliver)?))?", rights=_CHANGES),
    _storage("/v3(/.*)?"),
    _legacy("/pinning/pinFileToIPFS", methods=frozenset({"POST"}), body=_UPLOAD, rights=_CHANGES),
    _legacy("/pinning/pinJSONToIPFS", body=_ANY_JSON, rights=_CHANGES),
    _legacy("/data/testAuthentication", rights=_NONE),
    _legacy("/(data/(userPinnedDataTotal|pinList)|pinning/pinJobs)", rights=_READS),
    _legacy(f"/pinning/(hashMetadata|unpin/{_ID}|pinByHash)", rights=_CHANGES),
    _legacy(f"/psa/pins(/{_ID})?", rights=_CHANGES),
    _legacy(f"/groups(/{_ID}(/cids)?)?", rights=_CHANGES),
    _legacy("/(pinning|data|psa)/.*|/groups(/.*)?"),
    _open("/metrics", hosts=frozenset({HostKind.LOCAL, HostKind.MANAGEMENT}), is_rate_limited=False),
    _open("/tls/permission", hosts=frozenset({HostKind.LOCAL}), is_rate_limited=False),  # Caddy asks, ours or another
    _open("/healthz|/readyz", is_rate_limited=False),
    _open("/openapi|/.well-known/roost"),
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
    return next(rule for rule in URL_MAP if rule.matches(method, path))


def is_chat_path(path: str) -> bool:
    """Return whether a path on an agent's address belongs to its chat API, whose clients read errors of OpenAI's."""
    return path.startswith("/v1/")


def find_path_agent(target: bytes) -> str | None:
    """Return the agent that a request target of the agents API names, None for others."""
    found = _AGENT_TARGET.match(target)
    return None if found is None else found[1].decode()


def find_path_upload(target: bytes) -> str | None:
    """Return the token of the resumable upload that a request target names, None for others."""
    found = _UPLOAD_TARGET.match(target)
    return None if found is None else found[1].decode()


def strip_operation(target: bytes) -> str:
    """Return a request target of the platform without its operation, whose path may have a secret."""
    found = _AGENT_TARGET.match(target)
    return target[:3].decode() if found is None else target[: found.end(1)].decode()


def is_platform_target(target: bytes) -> bool:
    """Return whether a request target on an agent's address is the platform's; all others are the agent's."""
    return target.startswith(b"/v0/") or target.partition(b"?")[0] == b"/v0"
