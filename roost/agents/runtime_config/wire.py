"""Shapes of the runtime configuration (contract: Console, devices, config)."""

from typing import Any

from roost.drivers.engine.abilities.configuration import Verdict
from roost.web.wire import Wire


class Config(Wire):
    """A text in the engine's own form, or a JSON object; what else comes is told apart by the service."""

    config: Any = None


class ConfigText(Wire):
    config: str


class ConfigWritten(Wire):
    success: bool = True
    message: str = "Config written"


class Validation(Wire):
    """`output` is in the engine's words."""

    valid: bool
    output: str


def validation(verdict: Verdict) -> Validation:
    return Validation(valid=verdict.valid, output=verdict.output)
