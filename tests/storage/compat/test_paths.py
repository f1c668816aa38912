"""The table of old paths is complete, and the list of clients is consistent."""

import json
from pathlib import Path

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import route_table
from roost.storage.compat.paths import HANDLED_PATHS, PATH_REWRITES, SupportedClient
from roost.web.service_registry import ServiceRegistry

ROOT = Path(__file__).parents[3]
SERVED = {
    (row["method"], row["path"]): row["handler"]
    for row in route_table(create_application(ServiceRegistry(), HostAddresses()))
}


def test_every_rewrite_leads_to_a_current_operation() -> None:
    for row in PATH_REWRITES:
        for method in row.methods - {"HEAD"}:
            old = row.path.replace(":uuid", "")
            assert SERVED[method, old] == SERVED[method, row.current]
            assert ("{network}" in row.current) == (row.network is not None)


def test_every_handler_of_the_package_has_a_row() -> None:
    handled = {path for (_, path), handler in SERVED.items() if handler.startswith("roost.storage.compat.")}
    assert handled == set(HANDLED_PATHS)


def test_every_row_names_a_client_and_every_client_has_a_row() -> None:
    rows = [*(row.clients for row in PATH_REWRITES), *HANDLED_PATHS.values()]
    assert all(rows)
    assert {client for clients in rows for client in clients} == set(SupportedClient)


def test_the_clients_are_those_of_the_guide_and_of_the_tests() -> None:
    guide = (ROOT / "docs" / "guides" / "coming-from-pinata.md").read_text()
    for client in SupportedClient:
        assert client in guide.replace("`", ""), f"the guide does not name {client}"
    tested = {}
    for folder in ("tests/clients", "tests/clients/old"):
        for name, version in json.loads((ROOT / folder / "package.json").read_text())["dependencies"].items():
            tested[f"{name} {version}".replace("pinata-1 npm:pinata@", "pinata ")] = folder
    javascript = set(SupportedClient) - {SupportedClient.GO, SupportedClient.PINNING_SERVICE}
    assert javascript <= set(tested)
