"""With which model the engine answers: the platform's first, or the one in the user's own `config.yaml`.

What the managed scope names, no user can change. So it names no model where the user has one that can be served.
"""

from collections.abc import Iterable, Mapping

from roost.drivers.engine.contract import GatewaySetup

USERS_CONFIG = ".hermes/config.yaml"
_MOST_LINES = 5_000


def default(setup: GatewaySetup) -> Mapping[str, str]:
    """`model.default` of the managed scope, or nothing where the user's choice stays."""
    chosen = _chosen(setup.existing.get(USERS_CONFIG, b"").decode(errors="replace").split("\n", _MOST_LINES))
    stays = chosen in setup.models or (chosen and not setup.all_models)
    return {} if stays else {"default": setup.models[0]}


def _chosen(lines: Iterable[str]) -> str:
    """`model: NAME`, or `default: NAME` in the block `model:`, as Hermes and people write it.

    That is not YAML in all its forms, and need not be: what is found counts when it is a model that is served.
    """
    inside = False
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1].strip():
            inside = bool(colon) and name == "model"
        if inside and name.strip() in ("model", "default") and (plain := _plain(value)):
            return plain
    return ""


def _plain(value: str) -> str:
    """A scalar without its quotes and a comment after it; nothing for whatever else it is."""
    plain = value.split(" #", 1)[0].strip()
    if plain[:1] in ("'", '"'):
        plain = plain[1:].partition(plain[0])[0]
    return "" if plain[:1] in ("#", "{", "[", "&", "*", "|", ">", "!") else plain
