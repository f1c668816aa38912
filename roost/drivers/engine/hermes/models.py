"""Choice of the engine's model: the platform's default, or the one in the user's own `config.yaml`.

Users cannot override a key of the managed scope, so it has no model if the user chose one that can be served.
"""

from collections.abc import Iterable, Mapping

from roost.drivers.engine.contract import GatewaySetup

USERS_CONFIG = ".hermes/config.yaml"
_MOST_LINES = 5_000


def default_model(setup: GatewaySetup) -> Mapping[str, str]:
    """Return `default` for the managed scope's `model`, or nothing to keep the user's choice."""
    chosen = _parse_model(setup.existing.get(USERS_CONFIG, b"").decode(errors="replace").split("\n", _MOST_LINES))
    keep = chosen in setup.models or (chosen and not setup.all_models)
    return {} if keep else {"default": setup.models[0]}


def _parse_model(lines: Iterable[str]) -> str:
    """Return NAME of `model: NAME`, or of `default: NAME` in the block `model:`.

    These are the forms that Hermes and users write. Other YAML is not needed, since only a served model counts.
    """
    in_block = False
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1].strip():
            in_block = bool(colon) and name == "model"
        if in_block and name.strip() in ("model", "default") and (model := _parse_scalar(value)):
            return model
    return ""


def _parse_scalar(value: str) -> str:
    """Return a scalar without quotes and comment, empty for anything else."""
    plain = value.split(" #", 1)[0].strip()
    if plain[:1] in ("'", '"'):
        plain = plain[1:].partition(plain[0])[0]
    return "" if plain[:1] in ("#", "{", "[", "&", "*", "|", ">", "!") else plain
