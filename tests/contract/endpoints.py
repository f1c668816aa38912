"""The contract's endpoints as data, and which of them are here by now."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from roost.hosts.mount import application
from roost.hosts.routes import table
from roost.web.provide import Rooms

CONTRACT = Path(__file__).parents[3] / "shared" / "contract"


def routes() -> dict[tuple[str, str], dict[str, Any]]:
    """Our routes by method and path."""
    rows = table(application(Rooms(), "http://agents.localhost", {}, CollectorRegistry()))
    return {(row["method"], row["path"]): dict(row) for row in rows}


def endpoints(api: str = "agents") -> list[dict[str, Any]]:
    """Those of the operations of one of the contract's two documents that are here."""
    if not CONTRACT.exists():
        return []
    here = routes()
    rows = json.loads((CONTRACT / "endpoints.json").read_text())
    return [row for row in rows if row["api"] == api and (row["method"], row["path"]) in here]


needs_contract = pytest.mark.skipif(not CONTRACT.exists(), reason="the contract documents are not beside the checkout")
