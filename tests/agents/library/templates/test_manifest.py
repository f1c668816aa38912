"""A manifest has one model, whichever form it is written in, and an untrusted one names what is wrong with it."""

import json
from typing import Any

import pytest

from roost.agents.library.templates.manifest import ParsedManifest, TemplateManifest, parse_template_manifest

MANIFEST = {"version": 1, "agent": {"name": "Eve"}}
TASK = {"name": "Report", "schedule": "0 8 * * *", "prompt": "Summarise"}


def parse(change: dict[str, Any] | bytes) -> ParsedManifest:
    return parse_template_manifest(change if isinstance(change, bytes) else json.dumps(MANIFEST | change).encode())


def valid(change: dict[str, Any]) -> TemplateManifest:
    parsed = parse(change)
    assert parsed.manifest is not None, parsed.errors
    return parsed.manifest


def test_the_documented_form() -> None:
    manifest = valid(
        {
            "$schema": "https://example.org/manifest.v1.json",
            "engine": "hermes",
            "agent": {"name": " Eve ", "description": "Reads.", "vibe": "calm", "emoji": "📚"},
            "model": "openai/gpt-5",
            "secrets": [{"name": "BOT", "description": "of the bot", "guideSteps": ["Ask."], "required": False}],
            "skills": [{"name": "Search", "clawhub_slug": "@ada/search"}, {"cid": "bafy"}],
            "tasks": [{**TASK, "enabled": False}],
            "scripts": {"build": "make", "start": ""},
            "routes": [{"port": 3000, "path": "/app"}],
            "channels": {"telegram": {"botToken": "env:BOT", "dmPolicy": "closed", "allowFrom": ["4711"]}},
            "template": {"slug": "reader", "category": "actions & transactions", "authorName": "Ada", "tags": ["a"]},
        }
    )
    assert (manifest.agent.name, manifest.model, manifest.template.author_name) == ("Eve", "openai/gpt-5", "Ada")
    assert [skill.clawhub_slug for skill in manifest.skills] == ["@ada/search", None]
    assert (manifest.scripts.build, manifest.scripts.start) == ("make", None)
    assert manifest.routes[0].protected
    assert manifest.tasks[0].payload.message == "Summarise"
    assert manifest.tasks[0].schedule.expr == "0 8 * * *"
    assert TemplateManifest.from_document(manifest.to_document()).to_document() == manifest.to_document()


def test_other_forms_of_a_manifest_are_parsed() -> None:
    task = {"name": "Once", "schedule": {"kind": "every", "everyMs": 60_000}, "payload": {"kind": "agentTurn"}}
    task["payload"] = {"kind": "agentTurn", "message": "Go"}
    manifest = valid(
        {
            "model": {"primary": "openai/gpt-5", "fallbacks": []},
            "tasks": [task],
            "template": {"partnerName": "Ada", "partnerUrl": "https://ada.example", "partnerLogoUrl": "http://a/b.png"},
        }
    )
    assert manifest.model == "openai/gpt-5"
    assert manifest.template.author_name == "Ada"
    assert manifest.template.author_url == "https://ada.example"
    assert manifest.tasks[0].schedule.every_ms == 60_000
    assert TemplateManifest.from_document(manifest.to_document()).to_document() == manifest.to_document()


def test_unknown_parts_of_a_manifest_are_warnings() -> None:
    parsed = parse(
        {
            "_docs": {"x": 1},
            "agent": {"name": "Eve", "age": 5},
            "tasks": [{**TASK, "retry": 1}],
            "channels": {"slack": {"botToken": "env:BOT", "icon": "x"}},
            "routes": [{"port": 3000, "path": "/app"}, {"port": 3000, "path": "/site", "protected": False}],
        }
    )
    assert parsed.manifest is not None
    assert {fault.path: fault.message for fault in parsed.warnings} == {
        "_docs": "unknown field, ignored",
        "agent.age": "unknown field, ignored",
        "tasks.0.retry": "unknown field, ignored",
        "channels.slack.icon": "unknown field, ignored",
        "channels.slack": "env:BOT is none of the secrets",
        "routes.1": "anyone can open /site without the gateway token",
    }


def test_a_stored_manifest_loses_routes_that_are_closed_since() -> None:
    routes = [{"port": port, "path": f"/{port}", "protected": False} for port in (3000, 8799, 8798)]
    document = {**valid({}).to_document(), "routes": routes}
    assert [route.port for route in TemplateManifest.from_document(document).routes] == [3000]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (b"", ""),
        (b"[" * 100_000, ""),
        (b"\xff", ""),
        (b"[]", ""),
        (b'{"version": ' + b"1" * 5000 + b"}", ""),
        (b" " * (1024**2 + 1), ""),
        ({"version": 2}, "version"),
        ({"engine": "../x"}, "engine"),
        ({"agent": {"name": "<b>"}}, "agent.name"),
        ({"agent": {"name": "x" * 101}}, "agent.name"),
        ({"agent": {"name": "x", "description": "x" * 10_001}}, "agent.description"),
        ({"model": {"first": "x"}, "agent": {}}, "agent.name"),
        ({"model": 5}, "model"),
        ({"secrets": [{"name": "a=b"}]}, "secrets.0.name"),
        ({"secrets": [{"name": "LD_PRELOAD"}]}, "secrets.0.name"),
        ({"secrets": [{"name": "X", "guideUrl": "javascript:alert(1)"}]}, "secrets.0.guideUrl"),
        ({"secrets": [{"name": "X"}, {"name": "X"}]}, "secrets.1"),
        ({"skills": [{"cid": "b"}] * 11}, "skills"),
        ({"skills": [{"cid": "b", "clawhub_slug": "c"}]}, "skills.0"),
        ({"skills": [{"name": "b"}]}, "skills.0"),
        ({"tasks": [TASK] * 21}, "tasks"),
        ({"tasks": [{**TASK, "schedule": "* * * * * *"}]}, "tasks.0.schedule"),
        ({"tasks": [{**TASK, "schedule": {"kind": "never"}}]}, "tasks.0"),
        ({"tasks": [{**TASK, "prompt": ""}]}, "tasks.0"),
        ({"scripts": {"build": 5}}, "scripts.build"),
        ({"scripts": {"start": "x" * 70_000}}, "scripts.start"),
        ({"routes": [{"port": 80, "path": "/"}]}, "routes.0.port"),
        ({"routes": [{"port": 18789, "path": "/"}]}, "routes.0.port"),
        ({"routes": [{"port": 8799, "path": "/"}]}, "routes.0.port"),
        ({"routes": [{"port": 3000, "path": "/"}, {"port": 8798, "path": "/x"}]}, "routes.1.port"),
        ({"routes": [{"port": 3000, "path": "/a/../b"}]}, "routes.0.path"),
        ({"routes": [{"port": 3000, "path": "/a"}, {"port": 3001, "path": "/a/"}]}, "routes.1"),
        ({"channels": {"irc": {}}}, "channels.irc.[key]"),
        ({"channels": {"slack": {"botToken": "xoxb-1234"}}}, "channels.slack.botToken"),
        ({"template": {"slug": "Not a slug"}}, "template.slug"),
        ({"template": {"tags": ["x"] * 11}}, "template.tags"),
        ({"template": {"authorUrl": "ftp://x"}}, "template.authorUrl"),
    ],
)
def test_errors_name_the_field(change: Any, path: str) -> None:
    parsed = parse(change)
    assert parsed.manifest is None
    assert [fault.path for fault in parsed.errors] == [path]
    assert "xoxb-1234" not in parsed.errors[0].message


def test_errors_are_bounded() -> None:
    parsed = parse({"channels": {f"c{number}": {} for number in range(10_000)}})
    assert 0 < len(parsed.errors) <= 50
