"""What a manifest asks for and an agent lacks: pure rules."""

import json
from typing import Any

import pytest

from roost.agents.library.instances.model import (
    AgentInputs,
    blocking_names,
    channel_request,
    list_missing,
    ready_channels,
)
from roost.agents.library.templates.manifest import TemplateManifest, parse_template_manifest
from roost.core.sensitive import Sensitive

TELEGRAM = {"telegram": {"botToken": "env:BOT"}}
SLACK = {"slack": {"botToken": "env:BOT", "appToken": "env:APP"}}
REQUIRED, OPTIONAL = [{"name": "BOT"}], [{"name": "BOT", "required": False}]


def manifest(**sections: Any) -> TemplateManifest:
    document = {"version": 1, "agent": {"name": "A"}, "template": {"slug": "a", "authorName": "B"}, **sections}
    parsed = parse_template_manifest(json.dumps(document).encode())
    assert parsed.manifest is not None, parsed.errors
    return parsed.manifest


@pytest.mark.parametrize(
    ("sections", "inputs", "missing"),
    [
        ({}, AgentInputs(), set()),
        ({"secrets": REQUIRED}, AgentInputs(), {("secret", "BOT", True)}),
        ({"secrets": OPTIONAL}, AgentInputs(), {("secret", "BOT", False)}),
        ({"secrets": REQUIRED}, AgentInputs(secrets=["BOT"]), set()),
        ({"secrets": REQUIRED, "channels": TELEGRAM}, AgentInputs(), {("secret", "BOT", True)}),
        ({"secrets": REQUIRED, "channels": TELEGRAM}, AgentInputs(channels=["telegram"]), set()),
        ({"secrets": REQUIRED, "channels": TELEGRAM}, AgentInputs(["BOT"]), {("channel", "telegram", True)}),
        ({"secrets": OPTIONAL, "channels": TELEGRAM}, AgentInputs(["BOT"]), {("channel", "telegram", False)}),
        ({"channels": TELEGRAM}, AgentInputs(), {("secret", "BOT", True)}),
        ({"channels": {"telegram": {"botToken": "env:BOT", "enabled": False}}}, AgentInputs(), set()),
        ({"channels": {"telegram": {}}}, AgentInputs(), {("channel", "telegram", False)}),
        ({"secrets": REQUIRED, "channels": SLACK}, AgentInputs(["BOT"]), {("secret", "APP", True)}),
        (
            {"skills": [{"cid": "bafy1"}, {"clawhub_slug": "@a/b"}]},
            AgentInputs(),
            {("skill", "bafy1"), ("skill", "@a/b")},
        ),
        ({"skills": [{"cid": "bafy1", "name": "b"}]}, AgentInputs(skills=["bafy1"]), set()),
        ({"skills": [{"clawhub_slug": "a/b"}, {"clawhub_slug": "b"}]}, AgentInputs(skills=["@a/b"]), set()),
        ({"skills": [{"clawhub_slug": "b"}]}, AgentInputs(skills=["@b/c"]), {("skill", "b")}),
        ({"model": "a/b"}, AgentInputs(models=["c"]), {("model", "a/b")}),
        ({"model": "a/b"}, AgentInputs(models=["a/b"]), set()),
        ({"model": "a/b"}, AgentInputs(), set()),
    ],
)
def test_missing_items_of_a_manifest_are_listed(
    sections: dict[str, Any], inputs: AgentInputs, missing: set[tuple[Any, ...]]
) -> None:
    found = list_missing(manifest(**sections), inputs)
    expected = {(*item, False)[:3] for item in missing}
    assert {(item.kind, item.name, item.required) for item in found} == expected
    assert blocking_names(found) == [item.name for item in found if item.required]


def test_channels_are_ready_with_all_of_their_tokens() -> None:
    both = manifest(channels={**SLACK, "discord": {}})
    assert ready_channels(both, AgentInputs(["BOT"])) == {}
    assert list(ready_channels(both, AgentInputs(["BOT", "APP"]))) == ["slack"]
    assert ready_channels(both, AgentInputs(["BOT", "APP"], ["slack"])) == {}


@pytest.mark.parametrize(
    ("policy", "allowed", "expected"),
    [("open", [], "open"), ("pairing", ["1"], "pairing"), ("closed", ["1"], "open"), ("closed", [], "pairing")],
)
def test_a_closed_channel_never_admits_everyone(policy: str, allowed: list[str], expected: str) -> None:
    channel = {"botToken": "env:BOT", "dmPolicy": policy, "allowFrom": allowed}
    request = channel_request(manifest(channels={"telegram": channel}).channels["telegram"], {"BOT": Sensitive("t")})
    assert (request.bot_token, request.dm_policy, list(request.allow_from or ())) == (
        Sensitive("t"),
        expected,
        allowed,
    )


def test_a_token_that_does_not_reach_agents_is_none() -> None:
    channel = manifest(channels=TELEGRAM).channels["telegram"]
    assert channel_request(channel, {}).bot_token is None
