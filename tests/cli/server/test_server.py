"""`roost api routes`: all endpoints, without a server."""

import json

from roost.http.stack.routes import GATEWAY, JWT, PLATFORM
from tests.cli.terminal import run


def test_routes_as_table_and_json() -> None:
    rows = json.loads(run("api", "routes", "-o", "json").stdout)
    create = next(row for row in rows if (row["method"], row["path"]) == ("POST", "/v0/agents"))
    assert create == {
        "method": "POST",
        "path": "/v0/agents",
        "credentials": [JWT],
        "right": "write",
        "addresses": ["management"],
        "handler": "roost.agents.lifecycle.workflows.api.create_agent",
    }
    show = next(row for row in rows if (row["method"], row["path"]) == ("GET", "/v0/agents/{agentId}"))
    assert show["credentials"] == [JWT, GATEWAY, PLATFORM]
    head, *lines = run("api", "routes").stdout.splitlines()
    assert head.split() == ["METHOD", "PATH", "CREDENTIALS", "ADDRESSES", "RIGHT", "HANDLER"]
    assert len(lines) == len(rows)


def test_the_description_of_the_api() -> None:
    described = json.loads(run("api", "openapi").stdout)
    assert described["openapi"].startswith("3.1")
    assert "/v0/agents/{agentId}/chat" in described["paths"]
