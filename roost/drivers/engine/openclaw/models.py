"""Choice of the engine's model, and the list of models that it offers.

The platform replaces the model that it chose itself at the last start by its present default. A user's own choice is
kept as long as it can be served, and while its provider cannot be queried.
"""

from collections.abc import Sequence
from typing import Any

from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.model.json_access import as_object

Json = dict[str, Any]
PROVIDER = "roost"


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
