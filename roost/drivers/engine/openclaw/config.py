"""The gateway's configuration as plain data: what users may change, what the platform decides, and both made one.

Three layers, the later wins: defaults, the user's file, the platform's keys. A file that is no JSON5 object is not
read. Whether the engine accepts the user's own keys only the engine can tell: see `start.sh`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyjson5

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import CHANNELS
from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.engine.openclaw import channels, models
from roost.drivers.runtime.contract import WORKSPACE

Json = dict[str, Any]

PORT = 18789
OWNER = "owner"
PLATFORM_CONFIG = ".roost/openclaw/openclaw.json"
"""What the platform alone would have had at the last start, relative to the home."""
_PLUGINS = ("memory-core", "device-pair")  # with no list the engine loads 18 of them and starts in 30 s
_LOG = "/home/agent/.openclaw/logs/gateway.log"
_MAX_BYTES = 1 << 20
_MAX_DEPTH = 64
INCLUDE = "$include"
_PROGRAMS = ("executablePath", "cliPath")  # which programs a gateway runs is decided by its PATH
_USERS_GATEWAY_KEYS = ("reload", "http", "tools", "nodes", "push", "terminal", "cliAgents", "roles")

_DEFAULTS: Json = {
    "models": {"mode": "replace", "catalogRefresh": {"enabled": False}},
    "agents": {"defaults": {"skipBootstrap": True, "heartbeat": {"every": "0m"}}},
    "browser": {"enabled": False},
    "logging": {"level": "info", "consoleStyle": "json"},  # so that the log stream knows levels and subsystems
}


def fresh(setup: GatewaySetup) -> Json:
    """The configuration of an agent that has none."""
    return merge({}, setup)


def merge(user: Json, setup: GatewaySetup) -> Json:
    gateway = _object(user.get("gateway"))
    kept = {**user, "gateway": {key: gateway[key] for key in _USERS_GATEWAY_KEYS if key in gateway}}
    kept.pop(INCLUDE, None)  # at the root another file could add to every section, `gateway` among them
    merged = _over(_over(_DEFAULTS, _without(kept, _PROGRAMS)), _imposed(setup))
    if talked := channels.section(setup.channels, _object(merged.get("channels"))):
        merged["channels"] = talked
    merged["plugins"]["allow"] = _allowed(_object(user.get("plugins")).get("allow"))
    former = setup.existing.get(PLATFORM_CONFIG)
    model = models.settled(merged, setup, None if former is None else read(former))
    merged["agents"]["defaults"]["model"] = model
    merged["models"]["providers"][models.PROVIDER]["models"] = models.offered(setup, model.get("primary"))
    return merged


def read(raw: bytes) -> Json | None:
    """Parse the user's JSON5 file; None unless it is an object within the limits of size and depth."""
    if len(raw) > _MAX_BYTES:
        return None
    try:
        found = pyjson5.decode(raw.decode("utf-8-sig"), _MAX_DEPTH)
        render(found)  # NaN, infinities and huge hexadecimal numbers are JSON5 that JSON cannot express
    except (pyjson5.Json5Exception, ValueError):
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def render(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, indent=2, allow_nan=False).encode()


def _imposed(setup: GatewaySetup) -> Json:
    return {
        "gateway": {
            "mode": "local",
            "port": PORT,
            "bind": "loopback",
            "auth": _auth(setup.token),
            "trustedProxies": ["127.0.0.1"],  # our edge comes from there and tells the caller's address
            "http": {"endpoints": {"chatCompletions": {"enabled": True}, "responses": {"enabled": True}}},
            "controlUi": {"enabled": True, "allowedOrigins": [setup.origin]},
        },
        "models": {"providers": {models.PROVIDER: _provider(setup)}},
        "agents": {"defaults": {"workspace": WORKSPACE}},
        "plugins": {},
        "logging": {"file": _LOG},  # by default all gateways of a machine share one
        "discovery": {"mdns": {"mode": "off"}},
        "update": {"checkOnStart": False},
        "telemetry": {"enabled": False},
    }


def edge_header(token: Sensitive[str]) -> str:
    """The name of the header by which the gateway knows our edge: a secret, derived from the internal token."""
    return f"x-roost-{hashlib.sha256(b'edge ' + token.reveal().encode()).hexdigest()[:40]}"


def _auth(token: Sensitive[str]) -> Json:
    """Who comes through our edge is let in by it, whatever token a device or a page has of its own to show and sign;
    who comes straight from the loopback shows the internal token, as the password.
    """
    proxy: Json = {"userHeader": edge_header(token), "allowUsers": [OWNER], "allowLoopback": True}
    return {"mode": "trusted-proxy", "password": token.reveal(), "trustedProxy": proxy}


def _provider(setup: GatewaySetup) -> Json:
    """The key is a placeholder: the model gateway knows the agent by the socket."""
    return {"baseUrl": setup.model_url, "apiKey": "none-needed", "api": "openai-completions"}


def _allowed(users: object) -> list[str]:
    extra = [name for name in cast("list[object]", users) if isinstance(name, str)] if isinstance(users, list) else []
    return list(dict.fromkeys([*_PLUGINS, *CHANNELS, *extra]))


def _over(below: Json, above: Json) -> Json:
    """`above` laid over `below`: objects key by key, everything else replaced. Neither is changed."""
    both = {
        key: _over(_object(below[key]), _object(above[key]))
        for key in below.keys() & above.keys()
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **both}


def _without(value: Any, names: Sequence[str]) -> Any:
    """The value without these keys, wherever they are."""
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in cast("Json", value).items() if key not in names}
    return [_without(one, names) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
