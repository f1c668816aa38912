import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.engine.openclaw import config_file

SETUP = GatewaySetup(
    agent_id="a1",
    name="one",
    origin="http://a1.agents.localhost:8642",
    token=Sensitive("internal-token"),
    model_url="http://127.0.0.1:8799/v1",
    models=["first", "second"],
    proxy_url="http://127.0.0.1:8798",
)
SECTIONS = st.sampled_from(
    [
        "gateway",
        "models",
        "agents",
        "plugins",
        "logging",
        "auth",
        "providers",
        "defaults",
        "model",
        "allow",
        "http",
        "x",
    ]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SECTIONS, inner, max_size=4),
    max_leaves=12,
)


def assert_platform_keys(merged: dict[str, Any]) -> None:
    gateway = merged["gateway"]
    assert (gateway["mode"], gateway["port"], gateway["bind"]) == ("local", 18789, "loopback")
    assert (gateway["auth"]["mode"], gateway["auth"]["password"]) == ("trusted-proxy", "internal-token")
    assert set(gateway["auth"]) == {"mode", "password", "trustedProxy"}
    assert set(gateway["auth"]["trustedProxy"]) == {"userHeader", "allowUsers", "allowLoopback"}
    assert gateway["trustedProxies"] == ["127.0.0.1"]
    assert gateway["http"]["endpoints"]["chatCompletions"]["enabled"] is True
    assert gateway["controlUi"] == {"enabled": True, "allowedOrigins": [SETUP.origin]}
    assert merged["models"]["providers"]["roost"]["baseUrl"] == SETUP.model_url
    assert [model["id"] for model in merged["models"]["providers"]["roost"]["models"]] == ["first", "second"]
    assert merged["agents"]["defaults"]["workspace"] == "/workspace"
    assert {"memory-core", "device-pair"} <= set(merged["plugins"]["allow"])
    assert merged["logging"]["file"] == "/home/agent/.roost/openclaw/gateway.log"


def test_an_agent_without_a_config_gets_the_platforms() -> None:
    fresh = config_file.merge_config({}, SETUP)
    assert_platform_keys(fresh)
    assert fresh["agents"]["defaults"]["model"] == {"primary": "roost/first"}
    assert fresh["agents"]["defaults"]["skipBootstrap"] is True
    assert json.loads(config_file.render_config(fresh)) == fresh
    # With any of these, a new gateway searches for the state of an older one for 2 s.
    assert not {"channels", "cron", "env", "memory", "messages", "proxy", "session", "tools", "web"} & fresh.keys()


@given(st.dictionaries(SECTIONS, ANY, max_size=6))
def test_the_platforms_keys_override_any_users_file(user: dict[str, Any]) -> None:
    before = json.dumps(user)
    assert_platform_keys(config_file.merge_config(user, SETUP))
    assert json.dumps(user) == before


def test_the_users_own_keys_are_preserved() -> None:
    user = {
        "meta": {"lastTouchedVersion": "2026.9.6"},
        "gateway": {
            "reload": {"mode": "off"},
            "http": {"securityHeaders": {"a": 1}, "endpoints": {"responses": {"enabled": False}}},
        },
        "agents": {"defaults": {"skipBootstrap": False, "heartbeat": {"every": "30m"}, "other": 1}},
        "channels": {"matrix": {"accessToken": "t"}},
        "plugins": {"allow": ["telegram", 7, "memory-core"]},
        "logging": {"level": "debug"},
    }
    merged = config_file.merge_config(user, SETUP)
    assert merged["meta"] == user["meta"]
    assert merged["channels"] == user["channels"]
    assert merged["gateway"]["reload"] == {"mode": "off"}
    assert merged["gateway"]["http"]["securityHeaders"] == {"a": 1}
    assert merged["gateway"]["http"]["endpoints"]["responses"] == {"enabled": True}
    assert merged["agents"]["defaults"]["skipBootstrap"] is False
    assert merged["agents"]["defaults"]["heartbeat"] == {"every": "30m"}
    assert merged["agents"]["defaults"]["other"] == 1
    assert merged["plugins"]["allow"] == ["memory-core", "device-pair", "telegram", "slack", "discord", "whatsapp"]
    assert merged["logging"]["level"] == "debug"
    assert config_file.merge_config(merged, SETUP) == merged


@pytest.mark.parametrize("key", ["executablePath", "cliPath"])
def test_users_cannot_choose_the_programs_to_run(key: str) -> None:
    user = {"browser": {key: "/tmp/x", "headless": True}, "channels": {"x": {"accounts": [{key: "/tmp/x", "a": 1}]}}}
    merged = config_file.merge_config(user, SETUP)
    assert merged["browser"]["headless"] is True
    assert merged["channels"] == {"x": {"accounts": [{"a": 1}]}}
    assert key not in json.dumps(merged)


def test_an_include_is_allowed_for_a_section_but_not_for_the_root() -> None:
    merged = config_file.merge_config(
        {"$include": "evil.json5", "gateway": {"$include": "x"}, "tools": {"$include": "t"}}, SETUP
    )
    assert "$include" not in merged
    assert "$include" not in merged["gateway"]
    assert merged["tools"] == {"$include": "t"}


def test_other_access_to_the_gateway_is_removed() -> None:
    insecure = {
        "auth": {"mode": "password", "password": "p", "allowTailscale": True},
        "bind": "lan",
        "customBindHost": "0.0.0.0",
        "tailscale": {"mode": "funnel"},
        "tls": {"enabled": True},
        "remote": {"url": "ws://x"},
        "controlUi": {"dangerouslyDisableDeviceAuth": True, "allowedOrigins": ["*"]},
        "trustedProxies": ["0.0.0.0/0"],
        "allowRealIpFallback": True,
    }
    merged = config_file.merge_config({"gateway": insecure}, SETUP)
    assert_platform_keys(merged)
    assert set(merged["gateway"]) == {"mode", "port", "bind", "auth", "trustedProxies", "http", "controlUi"}


@pytest.mark.parametrize(
    ("chosen", "primary"),
    [
        ({"primary": "roost/second", "fallbacks": ["roost/first"]}, "roost/second"),
        ("roost/second", "roost/second"),
        ({"primary": "own/x"}, "own/x"),
        ({"primary": "roost/gone"}, "roost/first"),
        ({"primary": "unknown/x"}, "roost/first"),
        ({"primary": 7}, "roost/first"),
        (None, "roost/first"),
    ],
)
def test_a_choice_of_model_is_kept_while_it_can_be_served(chosen: object, primary: str) -> None:
    user = {"agents": {"defaults": {"model": chosen}}, "models": {"providers": {"own": {"baseUrl": "http://x"}}}}
    model = config_file.merge_config(user, SETUP)["agents"]["defaults"]["model"]
    assert model["primary"] == primary
    if isinstance(chosen, dict) and "fallbacks" in chosen:
        assert model["fallbacks"] == ["roost/first"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"7", b"null", b"\xff\xfe", b"\0" * 9, b'{"a":' * 300 + b"1" + b"}" * 300, b" " * (1 << 21)],
)
def test_input_that_is_not_an_object_is_ignored(raw: bytes) -> None:
    assert config_file.parse_config(raw) is None


def test_json5_with_a_byte_order_mark_is_parsed() -> None:
    assert config_file.parse_config(b"\xef\xbb\xbf{a: 1, /* x */}") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,", 1),
        ("'it\\'s \"so\"' /* y\n */", 'it\'s "so"'),
        ('["http://x//y", "/* no */"]', ["http://x//y", "/* no */"]),
        ("[+1, -.5, 5., 0x1F, -0xff, 1e3, 5.e2]", [1, -0.5, 5, 31, -255, 1000.0, 500.0]),
        ("'a\\\nb\\x41\\v\\0'", "abA\v\0"),
        ("{true: true, null: null, }", {"true": True, "null": None}),
    ],
)
def test_json5_beyond_json(text: str, value: object) -> None:
    assert config_file.parse_config(b"// head\n{$a_1: %b}" % text.encode()) == {"$a_1": value}


@pytest.mark.parametrize(
    "text",
    [
        *("[1 2]", "1 b:2", "b", "tru e", "/* open", "'open", "[010]", "[1,,2]", "[" * 100, "@"),
        *("NaN", "-Infinity", "1e999", "0x" + "f" * 5000, "9" * 5000),
    ],
)
def test_malformed_values_and_values_outside_json_are_ignored(text: str) -> None:
    assert config_file.parse_config(b"{a: %b}" % text.encode()) is None


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text()))
def test_json_is_parsed(value: dict[str, object]) -> None:
    assert config_file.parse_config(json.dumps(value).encode()) == value
    assert config_file.parse_config(json.dumps(value, indent=2, ensure_ascii=False).encode()) == value


def start_config(
    user: dict[str, Any], setup: GatewaySetup = SETUP, former: GatewaySetup | None = None
) -> dict[str, Any]:
    """Return the configuration of a start with the user's file, after a former start if there is one."""
    existing = (
        {}
        if former is None
        else {config_file.PLATFORM_CONFIG: config_file.render_config(config_file.merge_config({}, former))}
    )
    return config_file.merge_config(user, replace(setup, existing=existing))


def primary(found: dict[str, Any]) -> str:
    return found["agents"]["defaults"]["model"]["primary"]


def choose(model: str) -> dict[str, Any]:
    return {"agents": {"defaults": {"model": {"primary": model}}}}


def test_the_platforms_former_default_is_replaced() -> None:
    later = replace(SETUP, models=["third", "first", "second"])
    assert primary(start_config(config_file.merge_config({}, SETUP), later, former=SETUP)) == "roost/third"


def test_the_users_choice_is_kept() -> None:
    later = replace(SETUP, models=["third", "first", "second"])
    assert primary(start_config(choose("roost/second"), later, former=SETUP)) == "roost/second"
    assert primary(start_config(choose("roost/second"), later)) == "roost/second"


def test_a_choice_that_is_not_served_is_replaced() -> None:
    assert primary(start_config(choose("roost/gone"), former=SETUP)) == "roost/first"


def test_a_choice_is_kept_and_offered_while_its_provider_cannot_be_queried() -> None:
    found = start_config(choose("roost/far/away"), replace(SETUP, all_models=False), former=SETUP)
    assert primary(found) == "roost/far/away"
    offered = [model["id"] for model in found["models"]["providers"]["roost"]["models"]]
    assert offered == ["first", "second", "far/away"]


@pytest.mark.parametrize("former", [b"\0", b"[]", b"{}", b'{"agents": 7}', json.dumps(choose("x")).encode()])
def test_any_former_configuration_is_accepted(former: bytes) -> None:
    found = config_file.merge_config(
        choose("roost/second"), replace(SETUP, existing={config_file.PLATFORM_CONFIG: former})
    )
    assert primary(found) == "roost/second"
