"""Shapes of the runtime configuration (contract: Console, devices, config)."""

from typing import Any

from roost.drivers.engine.abilities.configuration import ConfigurationVerdict
from roost.web.schemas import ApiSchema


class ConfigRequest(ApiSchema):
    """A text in the engine's own form, or a JSON object; what else comes is told apart by the service."""

    config: Any = None


class ConfigRecord(ApiSchema):
    config: str


class ConfigWriteResponse(ApiSchema):
    success: bool = True
    message: str = "Config written"


class ConfigValidationResponse(ApiSchema):
    """`output` is in the engine's words."""

    valid: bool
    output: str


def validation(verdict: ConfigurationVerdict) -> ConfigValidationResponse:
    return ConfigValidationResponse(valid=verdict.valid, output=verdict.output)
