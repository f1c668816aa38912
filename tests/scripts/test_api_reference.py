"""The generated reference has all operations with their fields."""

import re

import pytest
from api_reference import render_reference

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import list_operations
from roost.web.service_registry import ServiceRegistry


@pytest.fixture(scope="module")
def page() -> str:
    return render_reference(create_application(ServiceRegistry(), HostAddresses()))


def section(page: str, head: str) -> str:
    return page.partition(f"## {head}\n")[2].partition("\n## ")[0]


def test_every_operation_is_there(page: str) -> None:
    app = create_application(ServiceRegistry(), HostAddresses())
    wanted = {f"{one.method} `{one.path}`" for one in list_operations(app) if one.in_schema or one.sends}
    assert set(re.findall(r"^## (\w+ `.+`)$", page, re.MULTILINE)) == wanted


def test_a_request_shows_its_fields_and_their_limits(page: str) -> None:
    create = section(page, "POST `/v0/agents`")
    assert "Credentials: jwt." in create
    assert "[CreateAgentRequest](#createagentrequest)" in create
    assert "Answers 201: [CreateAgentResponse](#createagentresponse)" in create
    assert "Answers 500:" in create
    assert (
        "| `description` | string or null | at most 10000 characters |" in page.partition("### CreateAgentRequest\n")[2]
    )


def test_a_stream_shows_its_messages(page: str) -> None:
    stream = section(page, "WEBSOCKET `/v0/agents/{agentId}/logs`")
    assert "[LogMessageRecord](#logmessagerecord)" in stream
    assert "| `level` |" in stream
    assert "`TRACE`, `DEBUG`, `INFO`, `WARN`, `ERROR`, `FATAL`" in page.partition("### LogLevel\n")[2][:300]


def test_links_lead_to_a_shape(page: str) -> None:
    shapes = {name.lower() for name in re.findall(r"^### (\S+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\S+?)\)", page)) == shapes
