"""API shapes of the runtime configuration (contract: Console, devices, config)."""

from typing import Any

from roost.drivers.engine.abilities.configuration import ConfigurationVerdict
from roost.web.schemas import ApiSchema


class ConfigRequest(ApiSchema):
    """A configuration as text in the engine's own format or as a JSON object; the service rejects other types."""

    config: Any = None


class ConfigRecord(ApiSchema):
    config: str


class ConfigWriteResponse(ApiSchema):
    success: bool = True
    message: str = "Config written"


class ConfigValidationResponse(ApiSchema):
    """The result of a validation; `output` is the engine's."""

    valid: bool
    output: str


def validation_response(verdict: ConfigurationVerdict) -> ConfigValidationResponse:
    return ConfigValidationResponse(valid=verdict.valid, output=verdict.output)
