"""YAML for scripts: what goes in comes out, whichever version of YAML the reader speaks."""

import json
import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from roost.cli.output.output import OutputFormat, print_message, print_record
from roost.cli.output.yaml import render_yaml
from tests.cli.terminal import FakeServer

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda below: st.lists(below) | st.dictionaries(TEXT, below),
    max_leaves=10,
)


@given(VALUES)
@example({"\x85": None})
@example(["a\u2028b\nc", "\r"])
def test_a_reader_gets_the_value_back(value: object) -> None:
    assert yaml.safe_load(render_yaml(value)) == value
    shown = render_yaml(value, ascii_only=True)
    assert shown.isascii()
    assert "\x1b" not in shown
    assert yaml.safe_load(shown) == value


@pytest.mark.parametrize("text", ["1234e567", "1e5", ".5", "0o17", "y", "No", "null", "~", "12", "2026-01-02", "1_000"])
def test_a_text_that_some_reader_takes_for_another_type_is_quoted(text: str) -> None:
    assert re.fullmatch(f"- '{re.escape(text)}'\n", render_yaml([text]))


def test_repeated_values_have_no_anchors_and_lines_are_a_block() -> None:
    same = {"a": "one\ntwo\n"}
    assert render_yaml([same, same]) == "- a: |\n    one\n    two\n" * 2


def test_every_field_by_the_names_of_the_api(server: FakeServer) -> None:
    task = {"jobId": "j1", "name": "daily", "enabled": True, "payload": {"kind": "agentTurn"}, "state": None}
    server.answers |= {
        "GET /v0/agents": (200, {"agents": [{"agentId": "a1", "name": "Ada"}]}),
        "GET /v0/agents/a1/tasks": (200, {"tasks": [task]}),
    }
    assert yaml.safe_load(server.run("tasks", "list", "Ada", "-o", "yaml").stdout) == [task]
    assert json.loads(server.run("tasks", "list", "Ada", "-o", "json").stdout) == [task]


def test_messages_of_a_stream_are_documents(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        print_message({"count": number}, OutputFormat.YAML)
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == [{"count": 1}, {"count": 2}]
    print_record({"count": 1}, OutputFormat.YAML)
    assert capsys.readouterr().out == "count: 1\n"
