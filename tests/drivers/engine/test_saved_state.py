"""Which files of a home are saved, for every engine, and what of their configuration."""

import json
from pathlib import Path

import pytest

from roost.drivers.engine.abilities.saved_state import is_secret, without_secrets
from roost.drivers.engine.contract import Engine
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw

OPENCLAW, HERMES = OpenClaw(Path("/engines")), Hermes(Path("/engines"))


@pytest.mark.parametrize(
    ("engine", "path", "expected"),
    [
        (OPENCLAW, ".openclaw", True),
        (OPENCLAW, ".openclaw/agents/main/agent/openclaw-agent.sqlite", True),
        (OPENCLAW, ".openclaw/openclaw.json", True),
        (OPENCLAW, ".openclaw/skills/a/SKILL.md", True),
        (OPENCLAW, ".openclaw/openclaw.json.rejected", False),
        (OPENCLAW, ".openclaw/openclaw.json.bak.2", False),
        (OPENCLAW, ".openclaw/agents/main/agent/auth-profiles.json", False),
        (OPENCLAW, ".openclaw/credentials/whatsapp/default/creds.json", False),
        (OPENCLAW, ".openclaw/config-journal-fingerprint.key", False),
        (OPENCLAW, ".openclaw/tmp/openclaw-1000/gateway.state.lock.sqlite", False),
        (OPENCLAW, ".openclaw/cache/a", False),
        (OPENCLAW, ".roost/openclaw/openclaw.json", False),
        (OPENCLAW, ".openclawish", False),
        (HERMES, ".hermes/state.db", True),
        (HERMES, ".hermes/cron/jobs.json", True),
        (HERMES, ".hermes/memories/USER.md", True),
        (HERMES, ".hermes/.env", False),
        (HERMES, ".hermes/.env.rejected", False),
        (HERMES, ".hermes/auth.json", False),
        (HERMES, ".hermes/.anthropic_oauth.json", False),
        (HERMES, ".hermes/profiles/a/auth.json", False),
        (HERMES, ".hermes/state/gateway.heartbeat", False),
        (HERMES, ".hermes/cron/.tick.lock", False),
        (HERMES, ".hermes/plugins/roost/__init__.py", False),
        (HERMES, ".hermes/plugins/mine/__init__.py", True),
        (HERMES, ".roost/hermes/.env", False),
        (FakeEngine(), ".roost", True),
        (FakeEngine(), ".roost/logs", False),
    ],
)
def test_saved_paths_of_each_engine_are_known(engine: Engine, path: str, expected: bool) -> None:
    assert engine.saved_state.includes_all(path) is expected


@pytest.mark.parametrize("name", ["apiKey", "api_key", "botToken", "PASSWORD", "x-api-key", "client_secret", "key"])
def test_credentials_are_known_by_their_names(name: str) -> None:
    assert is_secret(name, "value")
    assert not is_secret(name, "${VARIABLE}")
    assert not is_secret(name, "")


def test_other_settings_stay() -> None:
    settings = {"maxTokens": 4096, "primaryKey": "id", "keyboard": "de", "list": [{"token": "x", "name": "n"}]}
    assert without_secrets(settings) == {**settings, "list": [{"name": "n"}]}


def test_the_configuration_of_openclaw_has_only_what_is_the_users() -> None:
    users = {
        "gateway": {"port": 1, "auth": {"password": "secret"}, "controlUi": {}, "reload": {"mode": "off"}},
        "channels": {"telegram": {"botToken": "123:secret", "groups": {}}},
        "models": {"providers": {"own": {"apiKey": "secret", "baseUrl": "http://localhost"}}},
    }
    stored = OPENCLAW.redact_configuration(json.dumps(users).encode())
    assert stored is not None
    assert b"secret" not in stored
    assert json.loads(stored) == {
        "gateway": {"reload": {"mode": "off"}},
        "channels": {"telegram": {"groups": {}}},
        "models": {"providers": {"own": {"baseUrl": "http://localhost"}}},
    }
    assert OPENCLAW.redact_configuration(b"no object") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a: b\n", "a: b\n"),
        ("model:\n  api_key: sk-1\n  max_tokens: 5\n", 'model:\n  api_key: ""\n  max_tokens: 5\n'),
        ("token: 'a b' # why\n", 'token: ""\n'),
        ('- password: "x y"\n', '- password: ""\n'),
        ("token: ${TOKEN}\n", "token: ${TOKEN}\n"),
        ("token:\nother: 1\n", "token:\nother: 1\n"),
        ("limits: {a: 1}\n", "limits: {a: 1}\n"),
        ("own: {api_key: sk-1}\n", None),
        ('{"token": "x"}\n', None),
        ("token: |\n  sk-1\n", None),
        ("token:\n  sk-1\n", None),
        ("token: a\n  b\n", None),
        ("token: &anchor x\n", None),
        ('token: "a\n  b"\n', None),
        ("- {name: x, token: y}\n", None),
        ("? token\n: sk-1\n", None),
    ],
)
def test_the_configuration_of_hermes(text: str, expected: str | None) -> None:
    assert HERMES.redact_configuration(text.encode()) == (None if expected is None else expected.encode())


def test_a_configuration_that_is_no_text() -> None:
    assert HERMES.redact_configuration(b"\xff") is None
