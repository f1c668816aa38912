"""The gateway's configuration file, merged from defaults, the user's file and the platform's keys; the later override.

A user's file that is not a JSON5 object is ignored. Only the engine can validate the user's own keys: see `start.sh`.
Decision 0012 says why.

The model is the platform's default, unless the user chose another one: the platform replaces the model that it chose
itself at the last start. A user's own choice is kept as long as it can be served, and while its provider cannot be
queried.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyjson5

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import CHANNELS
from roost.drivers.engine.abilities.saved_state import without_secrets
from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.engine.openclaw import channels
from roost.drivers.engine.openclaw.rpc import PORT
from roost.drivers.model.json_access import Json, as_list, as_object
from roost.drivers.runtime.contract import WORKSPACE

PROVIDER = "roost"
OWNER = "owner"
STATE = ".openclaw"
CONFIG = f"{STATE}/openclaw.json"
PLATFORM_CONFIG = ".roost/openclaw/openclaw.json"
"""The configuration of the last start without the user's file, relative to the home."""
_PLUGINS = ("memory-core", "device-pair")  # without a list the engine loads 18 and starts in 30 s
_LOG = "/home/agent/.roost/openclaw/gateway.log"
"""Outside the state folder: with a log there before the start, a new agent searches for old state for 2 s."""
_MAX_BYTES = 1 << 20
_MAX_DEPTH = 64
INCLUDE = "$include"
_PROGRAMS = ("executablePath", "cliPath")  # only PATH may select the programs that a gateway runs
_USERS_GATEWAY_KEYS = ("reload", "http", "tools", "nodes", "push", "terminal", "cliAgents", "roles")

_DEFAULTS: Json = {
    "models": {"mode": "replace", "catalogRefresh": {"enabled": False}},
    "agents": {"defaults": {"skipBootstrap": True, "heartbeat": {"every": "0m"}}},
    "browser": {"enabled": False},
    "logging": {"level": "info", "consoleStyle": "json"},  # so that the log stream can parse levels and subsystems
}


def merge_config(user: Json, setup: GatewaySetup) -> Json:
    """Return the configuration of a gateway; `user` is empty for an agent without a file."""
    gateway = as_object(user.get("gateway"))
    kept = {**user, "gateway": {key: gateway[key] for key in _USERS_GATEWAY_KEYS if key in gateway}}
    kept.pop(INCLUDE, None)  # at the root another file could change any section, including `gateway`
    merged = _merge(_merge(_DEFAULTS, _without(kept, _PROGRAMS)), _platform_keys(setup))
    if section := channels.merge_channels(setup.channels, as_object(merged.get("channels"))):
        merged["channels"] = section
    merged["plugins"]["allow"] = _allowed_plugins(as_object(user.get("plugins")).get("allow"))
    former = setup.existing.get(PLATFORM_CONFIG)
    model = choose_model(merged, setup, None if former is None else parse_config(former))
    merged["agents"]["defaults"]["model"] = model
    merged["models"]["providers"][PROVIDER]["models"] = list_models(setup, model.get("primary"))
    return merged


def parse_config(raw: bytes) -> Json | None:
    """Parse the user's JSON5 file; None unless it is an object within the limits of size and depth."""
    if len(raw) > _MAX_BYTES:
        return None
    try:
        found = pyjson5.decode(raw.decode("utf-8-sig"), _MAX_DEPTH)
        render_config(found)  # NaN, infinities and huge hexadecimal numbers are JSON5 that JSON cannot express
    except (pyjson5.Json5Exception, ValueError):
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def redact_config(raw: bytes) -> bytes | None:
    """Return the user's part of a file without credentials; None if it is no configuration."""
    users = parse_config(raw)
    if users is None:
        return None
    gateway = as_object(users.get("gateway"))
    kept = {**users, "gateway": {key: gateway[key] for key in _USERS_GATEWAY_KEYS if key in gateway}}
    return render_config(without_secrets(kept))


def render_config(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, indent=2, allow_nan=False).encode()


def _platform_keys(setup: GatewaySetup) -> Json:
    # The key is a placeholder, because the model gateway identifies the agent by the socket.
    provider = {"baseUrl": setup.model_url, "apiKey": "none-needed", "api": "openai-completions"}
    return {
        "gateway": {
            "mode": "local",
            "port": PORT,
            "bind": "loopback",
            "auth": _auth(setup.token),
            "trustedProxies": ["127.0.0.1"],  # our edge, which sends the caller's address
            "http": {"endpoints": {"chatCompletions": {"enabled": True}, "responses": {"enabled": True}}},
            "controlUi": {"enabled": True, "allowedOrigins": [setup.origin]},
        },
        "models": {"providers": {PROVIDER: provider}},
        "agents": {"defaults": {"workspace": WORKSPACE}},
        "plugins": {},
        "logging": {"file": _LOG},  # by default all gateways of a machine share a file
        "discovery": {"mdns": {"mode": "off"}},
        "update": {"checkOnStart": False},
        "telemetry": {"enabled": False},
    }


def edge_header(token: Sensitive[str]) -> str:
    """Return the name of the header that authenticates our edge: a secret derived from the internal token."""
    return f"x-roost-{hashlib.sha256(b'edge ' + token.reveal().encode()).hexdigest()[:40]}"


def _auth(token: Sensitive[str]) -> Json:
    """Return the authentication of requests.

    Our edge's header authenticates its requests, whatever token a device or page sends and signs itself. Requests
    directly from the loopback need the internal token as the password.
    """
    proxy: Json = {"userHeader": edge_header(token), "allowUsers": [OWNER], "allowLoopback": True}
    return {"mode": "trusted-proxy", "password": token.reveal(), "trustedProxy": proxy}


def _allowed_plugins(users: object) -> list[str]:
    return list(dict.fromkeys([*_PLUGINS, *CHANNELS, *(name for name in as_list(users) if isinstance(name, str))]))


def _merge(below: Json, above: Json) -> Json:
    """Return `below` overridden by `above`: objects key by key, other values as a whole."""
    both = {
        key: _merge(as_object(below[key]), as_object(above[key]))
        for key in below.keys() & above.keys()
        if isinstance(below[key], dict) and isinstance(above[key], dict)
    }
    return {**below, **above, **both}


def _without(value: Any, names: Sequence[str]) -> Any:
    """Return the value without these keys at any depth."""
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in cast("Json", value).items() if key not in names}
    return [_without(one, names) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def choose_model(config: Json, setup: GatewaySetup, former: Json | None) -> Json:
    """Return `agents.defaults.model` for a configuration; `former` is the platform's own at the last start."""
    model = _model(config)
    provider, _, name = str(model.get("primary", "")).partition("/")
    if provider == PROVIDER:
        keep = name in setup.models or (bool(name) and not setup.all_models)
        keep = keep and (former is None or _model(former).get("primary") != model["primary"])
    else:
        has_provider = config["models"].get("mode") == "merge" or provider in config["models"]["providers"]
        keep = bool(provider and name) and has_provider
    return model if keep else {**model, "primary": f"{PROVIDER}/{setup.models[0]}"}


def list_models(setup: GatewaySetup, primary: object) -> Sequence[Json]:
    """Return the models of the platform's provider: the served ones, and the chosen one even if it is not served."""
    provider, _, name = str(primary).partition("/")
    names = dict.fromkeys([*setup.models, *([name] if provider == PROVIDER else [])])
    return [{"id": name, "name": name, "contextWindow": 128_000, "maxTokens": 8_192} for name in names]


def _model(config: Json) -> Json:
    """Return `agents.defaults.model` in its long form."""
    model = as_object(as_object(config.get("agents")).get("defaults")).get("model")
    return {"primary": model} if isinstance(model, str) else as_object(model)
