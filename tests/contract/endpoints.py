"""The contract's operations as data (`endpoints.json`)."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import route_table
from roost.web.service_registry import ServiceRegistry

Row = dict[str, Any]

UNKNOWN = "00000000-0000-4000-8000-000000000000"
CONTRACT = Path(__file__).parents[3] / "shared" / "contract"
ROWS: list[Row] = json.loads(Path(__file__).with_name("endpoints.json").read_text())


@cache
def routes() -> dict[tuple[str, str], Row]:
    """Return our routes by method and path."""
    rows = route_table(create_application(ServiceRegistry(), HostAddresses(public_port=8642)))
    return {(row["method"], row["path"]): dict(row) for row in rows}


def route(row: Row) -> Row | None:
    """Return our route for an operation; the short paths of an agent's own address mean the long ones."""
    found = routes().get(key(row))
    if found is None and row["hosts"] == ["agent"]:
        found = routes().get((row["method"], row["path"].replace("/v0/", "/v0/agents/{agentId}/", 1)))
    return found


def key(row: Row) -> tuple[str, str]:
    return row["method"], row["path"]


def name(row: Row) -> str:
    return f"{row['method']} {row['path']}"


def fill_path(path: str, values: Mapping[str, str], other: str = UNKNOWN) -> str:
    """Return a path with its parameters replaced, those without a value by `other`."""
    return re.sub(r"{(\w+)}", lambda parameter: values.get(parameter[1], other), path)


def endpoints(api: str = "agents") -> list[Row]:
    """Return the operations of one document that have a route with their own path."""
    return [row for row in ROWS if row["api"] == api and key(row) in routes()]


def all_endpoints(api: str | None = None) -> list[Any]:
    """Return every operation as a test parameter."""
    return [pytest.param(row, id=name(row)) for row in ROWS if api in (None, row["api"])]


needs_contract = pytest.mark.skipif(not CONTRACT.exists(), reason="the contract documents are not beside the checkout")
