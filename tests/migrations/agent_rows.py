"""Rows of the revisions before storage: work, identity, agents."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.migrations.row_values import OTHER, TENANT, THEN, Row, digest, key, sealed

SIGNING_KEY = bytes(range(32, 64))


def operation(name: str, /, state: str, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "kind": "pins.retrieve",
        "subject": "pin/p2",
        "payload": '{"pin":"p2"}',
        "state": state,
        "attempts": 0,
        "failures": 0,
        "lease_owner": None,
        "lease_until": None,
        "run_after": THEN,
        "result": None,
        "error": None,
        "created_at": THEN,
        "finished_at": None,
    }
    return "operations", row | more


def _agent(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "name": name,
        "description": None,
        "vibe": None,
        "emoji": None,
        "engine": "openclaw",
        "engine_version": "2026.9.6",
        "internal_sealed": sealed(b"internal", f"agents/{name}/internal"),
        "state": "running",
        "reason": None,
        "deleted": False,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "agents", row | more


def _snapshot(snapshot_id: str, **fields: Any) -> Row:
    row = {
        "id": snapshot_id,
        "agent_id": "a1",
        "tenant_id": TENANT,
        "cid": "bafybeicid",
        "commit_sha": None,
        "trigger": "request",
        "change_summary": "1 file changed",
        "files": 3,
        "size": 2**40,
        "skipped": '[["pipe","special",null],["\\udcff","secret","TOKEN"]]',
        "skipped_count": 2,
        "label": None,
        "packs": '["p1"]',
        "created_at": THEN,
    }
    return "snapshots", {**row, **fields}


def _domain(domain_id: str, **fields: Any) -> Row:
    row = {
        "id": domain_id,
        "tenant_id": TENANT,
        "owner_kind": "agent",
        "owner_id": "a1",
        "name": "app.example.com",
        "holder": None,
        "subdomain": None,
        "port": None,
        "is_protected": True,
        "cid": None,
        "status": "active",
        "reason": None,
        "misses": 0,
        "checked_at": None,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "domains", {**row, **fields}


def _skill_version(version_id: str, **fields: Any) -> Row:
    row = {
        "id": version_id,
        "skill_id": "k1",
        "tenant_id": TENANT,
        "version": "1.0.0",
        "cid": f"bafybeiskill{version_id}",
        "description": "d" * 1024,
        "env_vars": "[]",
        "file_id": None,
        "wants": '{"secrets":[["API_KEY","",true]],"programs":["git"],"hosts":["api.example.com"]}',
        "warnings": '["unknown key: author"]',
        "verdict": "dangerous",
        "findings": '[["remote-code","dangerous","run.sh",3,"curl | sh"]]',
        "rules_version": "1",
        "files": 2,
        "size": 2**40,
        "created_at": THEN,
    }
    return "skill_versions", {**row, **fields}


def _template(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "slug": "s" * 100,
        "active_slug": None,
        "name": "n" * 100,
        "name_override": None,
        "description": "",
        "category": "other",
        "tags": "[]",
        "author_name": "",
        "author_url": None,
        "author_logo_url": None,
        "engine": None,
        "vibe": None,
        "emoji": None,
        "secrets": "[]",
        "skills": "[]",
        "status": "archived",
        "featured": False,
        "git_url": "https://git.example/" + "u" * 2028,
        "git_ref": None,
        "git_path": None,
        "commit_sha": "c" * 40,
        "snapshot_cid": "bafybeicid",
        "version": 1,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "templates", row | more


def _instance(agent_id: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "agent_id": agent_id,
        "template_id": "t2",
        "slug": "reader",
        "name": "Reader",
        "version": 2,
        "commit_sha": "c" * 40,
        "manifest": '{"version":1,"agent":{"name":"Reader"}}',
        "is_waiting": True,
        "attempt": None,
        "created_at": THEN,
    }
    return "template_instances", row | more


def _hub_skill(skill_id: str, **fields: Any) -> Row:
    row = {
        "id": skill_id,
        "tenant_id": TENANT,
        "owner": "h" * 38,
        "name": "b",
        "description": "d" * 1024,
        "author_name": "ü",
        "author_url": None,
        "author_logo_url": None,
        "category": "other",
        "tags": "[]",
        "featured": False,
        "install_count": 1,
        "latest_id": "w1",
        "search": "@h/b d other",
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "hub_skills", {**row, **fields}


def hub_version(version_id: str, **fields: Any) -> Row:
    row = {
        "id": version_id,
        "hub_skill_id": "h1",
        "tenant_id": TENANT,
        "version": "1.0.0",
        "cid": "bafybeiskill",
        "description": "d",
        "license": None,
        "body": "# b",
        "changelog": "",
        "wants": '{"secrets":[{"name":"API_KEY","description":"","required":true}],"programs":["git"],"hosts":[]}',
        "verdict": '{"level":"review","rules_version":"1","findings":'
        '[{"rule":"r","level":"review","path":"SKILL.md","line":1,"excerpt":"x"}]}',
        "rules_version": "1",
        "fingerprint": "f" * 64,
        "files": 1,
        "size": 3,
        "created_at": THEN,
    }
    return "hub_versions", {**row, **fields}


def _host(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "name": "n" * 255,
        "folder": "/" + "f" * 4095,
        "session": "s" * 64,
        "started_at": THEN,
        "seen_at": None,
    }
    return "hosts", row | more


def _script(script: str, **more: Any) -> Row:
    row: dict[str, Any] = {
        "agent_id": "a1",
        "script": script,
        "state": "pending",
        "reason": None,
        "exit_code": None,
        "digest": None,
        "started_at": None,
        "finished_at": None,
    }
    return "agent_scripts", row | more


def _channel(channel: str, **more: Any) -> Row:
    row: dict[str, Any] = {
        "agent_id": "a1",
        "channel": channel,
        "sealed": sealed(b"{}", f"agent_channels/a1/{channel}"),
        "bot_mark": None,
        "app_mark": None,
        "enabled": True,
        "dm_policy": "pairing",
        "allow_from": "[]",
        "bot_name": None,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "agent_channels", row | more


_ATTACHED_SKILL = {"skill_id": "k1", "version_id": "v1", "attached_at": THEN}
ROWS: Mapping[str, Sequence[Row]] = {
    "0001": [
        operation("o1", "pending"),
        operation(
            "o2", "running", lease_owner="server", lease_until=THEN, attempts=2, failures=1, error='{"kind":"x"}'
        ),
        operation("o3", "done", payload=None, result='"' + "r" * 10_000 + '"', finished_at=THEN),
    ],
    "0002": [
        ("tenants", {"id": TENANT, "name": "ada", "plan": "paid", "created_at": THEN}),
        ("tenants", {"id": OTHER, "name": "ü" * 100, "plan": "free", "created_at": THEN}),
        key("before"),
        key("scoped", scopes='["org:files:read"]'),
        key("revoked", revoked_at=THEN),
        ("signing_keys", {"id": "k1", "sealed": sealed(SIGNING_KEY, "signing_keys/k1"), "created_at": THEN}),
        (
            "gateway_tokens",
            {
                "agent_id": "a1",
                "tenant_id": TENANT,
                "digest": digest("agent"),
                "sealed": sealed(b"agent", "gateway_tokens/a1"),
                "created_at": THEN,
            },
        ),
    ],
    "0003": [
        _agent("a1", description="d" * 10_000, vibe="calm", emoji="🦞"),
        _agent("a2", state="failed", reason="", engine="hermes"),
        _agent("a3", deleted=True),
    ],
    "0004": [
        (
            "model_usage",
            {
                "tenant_id": TENANT,
                "agent_id": agent,
                "day": "2025-11-21",
                "model": "m" * 300,
                "requests": 1,
                "prompt_tokens": 2**40,
                "completion_tokens": 0,
            },
        )
        for agent in ("", "a1")
    ],
    "0005": [
        (
            "secrets",
            {
                "id": "s1",
                "tenant_id": TENANT,
                "name": "N" * 128,
                "kind": "variable",
                "sealed": sealed("wört".encode(), f"secrets/{TENANT}/s1/2"),
                "version": 2,
                "created_at": THEN,
                "updated_at": THEN,
            },
        ),
        ("agent_secrets", {"agent_id": "a1", "secret_id": "s1", "attached_at": THEN, "synced_version": None}),
        ("agent_secrets", {"agent_id": "a2", "secret_id": "s1", "attached_at": THEN, "synced_version": 2}),
    ],
    "0006": [_channel("telegram", bot_mark="b" * 64, allow_from='["1"]'), _channel("whatsapp", enabled=False)],
    "0007": [_script("build", state="failed", reason="exit", exit_code=1, digest="d" * 64), _script("start")],
    "0023": [_host("h1", seen_at=THEN), _host("h2")],
    "0024": [
        _snapshot("n1", label="l" * 100),
        _snapshot("n2", commit_sha="c" * 40),
        ("workspace_indexes", {"agent_id": "a1", "snapshot_id": "n2", "synced_at": THEN, "data": b"index"}),
    ],
    "0025": [_snapshot("n3", state_cid="bafybeistate", state_files=2, state_size=2**40, state_packs='["p2"]')],
    "0026": [_snapshot("n4", searched='["0f"]')],
    "0027": [
        ("skills", {"id": "k1", "tenant_id": TENANT, "name": "n" * 64, "slug": None, "created_at": THEN}),
        ("skills", {"id": "k2", "tenant_id": TENANT, "name": "b", "slug": "@ada/" + "b" * 64, "created_at": THEN}),
        _skill_version("v1"),
        _skill_version("v2", version="2.0.0-rc.1", verdict="clean", findings="[]", env_vars='["KEY"]', file_id="f1"),
        ("agent_skills", {**_ATTACHED_SKILL, "agent_id": "a1", "delivered_id": "v1"}),
        ("agent_skills", {**_ATTACHED_SKILL, "agent_id": "a2", "delivered_id": None}),
    ],
    "0028": [
        _template("t1"),
        _template(
            "t2",
            slug="reader",
            active_slug="reader",
            name_override="R",
            tags='["a"]',
            engine="hermes",
            secrets='[{"name":"KEY"}]',
            skills='["bafy"]',
            status="published",
            featured=True,
            git_ref="r" * 255,
            git_path="p",
            version=2,
        ),
        (
            "template_versions",
            {
                "template_id": "t2",
                "version": 2,
                "commit_sha": "c" * 40,
                "manifest": '{"version":1,"agent":{"name":"Reader"}}',
                "readme": "# Reader",
                "snapshot_cid": "bafybeicid",
                "files": 3,
                "size": 2**40,
                "pack_id": "0f" * 16,
                "created_at": THEN,
            },
        ),
    ],
    "0029": [
        _instance("a1"),
        _instance("a2", template_id="t1", is_waiting=False, attempt='[[["s1",1]],[]]'),
    ],
    "0030": [
        ("hub_owners", {"handle": "h" * 38, "tenant_id": TENANT}),
        _hub_skill("h1", name="n" * 64),
        _hub_skill("h2", author_url="https://ada.example", tags='["csv"]', featured=True, latest_id="w2"),
        hub_version("w1"),
        hub_version("w2", hub_skill_id="h2", license="MIT", version="2.0.0-rc.1", size=2**40),
        ("hub_installs", {"hub_skill_id": "h1", "tenant_id": OTHER, "installed_at": THEN}),
        ("hub_uploads", {"id": "u1", "tenant_id": TENANT, "size": 3, "content": b"abc", "created_at": THEN}),
        ("hub_uploads", {"id": "u2", "tenant_id": TENANT, "size": 3, "content": None, "created_at": THEN}),
    ],
    "0031": [_agent("a4", deleted=True, model="m" * 200)],
    "0032": [
        ("agent_routes", {"agent_id": "a1", "routes": '[{"prefix":"/app","port":3000,"is_protected":false}]'}),
    ],
    "0033": [_hub_skill("h3", name="m" * 64, category="c" * 40, latest_id="w3"), hub_version("w3", hub_skill_id="h3")],
    "0034": [
        (
            "sign_in_links",
            {"digest": digest("code"), "agent_id": "a1", "token_digest": digest("agent"), "expires_at": THEN},
        ),
    ],
    "0035": [
        _domain("m1", name="ada.agents.localhost", holder="ada.agents.localhost", subdomain="ada"),
        _domain("m2", status="pending_ownership", reason="r" * 300, port=65535, is_protected=False),
        _domain("m3", owner_kind="storage_gateway", owner_id="s" * 63, cid="b" * 128, name="x" * 253),
        _domain("m4", name="h" * 253, holder="h" * 253, misses=2, checked_at=THEN),
        ("domain_challenges", {"tenant_id": TENANT, "domain": "x" * 253, "token": "0f" * 32, "created_at": THEN}),
    ],
    "0036": [("agent_ports", {"host_id": "h1", "port": 9000, "agent_id": "a1", "freed_at": THEN})],
}
