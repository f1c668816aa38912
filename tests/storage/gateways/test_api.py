"""Schemas of storage gateways."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.core.sensitive import Sensitive
from roost.storage.gateways import api
from roost.storage.gateways.model import AccessControl, AccessControlKind, Plugin, StorageGateway

NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
TOLD = "2026-11-21T10:29:47.355000Z"
CONTROLS = [AccessControl(kind.value, kind, f"v-{kind.value}", NOW) for kind in AccessControlKind]
GATEWAY = StorageGateway("g", "t", "shop", NOW, CONTROLS, frozenset(Plugin))


def test_how_a_gateway_is_told() -> None:
    told = api.gateway_record(GATEWAY, "https://shop.gateways.example").model_dump(mode="json", by_alias=True)
    policies = told.pop("settings")["restriction_policies"]
    assert told == {
        "id": "g",
        "domain": "shop",
        "url": "https://shop.gateways.example",
        "restrict": False,
        "created_at": TOLD,
        "custom_domains": [],
    }
    assert policies == {
        "accessTokens": [{"id": "access_tokens", "value": "v-access_tokens", "createdAt": TOLD}],
        "allowedHosts": [{"id": "hosts", "value": "v-hosts", "createdAt": TOLD}],
        "allowedIPAddresses": [{"id": "ips", "value": "v-ips", "createdAt": TOLD}],
    }


def test_one_without_controls_is_restricted() -> None:
    told = api.gateway_record(replace(GATEWAY, controls=()), "u").model_dump()
    assert told["restrict"] is True
    assert not any(told["settings"]["restriction_policies"].values())


def test_a_token_is_shown_when_it_was_made() -> None:
    assert api.control_record(CONTROLS[0], Sensitive("rgw_secret")).value == "rgw_secret"
    assert api.control_record(CONTROLS[0]).value == "v-access_tokens"


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        (api.CreateGatewayRequest, {"domain": "d" * 254}),
        (api.CreateGatewayRequest, {"domain": "a\0"}),
        (api.AddAddressRequest, {"ip": "1" * 65}),
        (api.AddHostRequest, {"host": "h" * 301}),
        (api.AddAddressRequest, {"value": "192.0.2.1"}),
        (api.AddHostRequest, {"origin": "app.example"}),
        (api.InstallPluginRequest, {"plugin_id": "x"}),
        (api.InstallPluginRequest, {}),
    ],
)
def test_bodies_that_are_refused(shape: Any, body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        shape.model_validate(body)


def test_the_marketplace_has_every_plugin() -> None:
    assert set(api.PLUGIN_RECORDS) == set(Plugin)
    assert [api.PLUGIN_RECORDS[plugin].id for plugin in Plugin] == [int(plugin) for plugin in Plugin]


def test_installed_plugins_are_listed() -> None:
    found = [one.model_dump() for one in api.list_installations(GATEWAY)]
    assert found == [{"gateway_id": "g", "plugin_id": 1}, {"gateway_id": "g", "plugin_id": 2}]
