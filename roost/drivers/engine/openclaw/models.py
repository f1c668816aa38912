"""Which models the engine offers its user, and with which one it answers: plain data out of plain data.

A model that is what the platform chose at the last start was nobody's choice, and gives way to a new default. A user's
own choice stays as long as it may be served: also while the provider of it cannot be asked.
"""

from collections.abc import Sequence
from typing import Any, cast

from roost.drivers.engine.contract import GatewaySetup

Json = dict[str, Any]
PROVIDER = "roost"


def settled(config: Json, setup: GatewaySetup, former: Json | None) -> Json:
    """`agents.defaults.model` of a configuration; `former` is what the platform made of the last start."""
    model = _model(config)
    provider, _, name = str(model.get("primary", "")).partition("/")
    if provider == PROVIDER:
        stays = name in setup.models or (bool(name) and not setup.all_models)
        stays = stays and (former is None or _model(former).get("primary") != model["primary"])
    else:
        elsewhere = config["models"].get("mode") == "merge" or provider in config["models"]["providers"]
        stays = bool(provider and name) and elsewhere
    return model if stays else {**model, "primary": f"{PROVIDER}/{setup.models[0]}"}


def offered(setup: GatewaySetup, primary: object) -> Sequence[Json]:
    """The models of the platform's provider: those that are served, and the chosen one, which may be again."""
    provider, _, name = str(primary).partition("/")
    names = dict.fromkeys([*setup.models, *([name] if provider == PROVIDER else [])])
    return [{"id": name, "name": name, "contextWindow": 128_000, "maxTokens": 8_192} for name in names]


def _model(config: Json) -> Json:
    """`agents.defaults.model` in its long form, whatever the user wrote."""
    found: Any = config
    for key in ("agents", "defaults", "model"):
        found = cast("Json", found).get(key) if isinstance(found, dict) else None
    if isinstance(found, str):
        return {"primary": found}
    return cast("Json", found) if isinstance(found, dict) else {}
