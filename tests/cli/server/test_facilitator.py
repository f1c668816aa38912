"""`roost facilitator`: what it needs, and what it refuses before it listens. tests/journeys has one that runs."""

from collections.abc import Sequence
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from roost.cli.main import cli
from roost.core.problem import Problem
from roost.drivers.facilitator import local_loader

KEY = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
RPC = ("--rpc", "http://127.0.0.1:1")


def refusal(folder: object, *flags: str, **environment: str) -> str:
    """Run the command; return the message of its problem."""
    result = CliRunner().invoke(cli, ["facilitator", "--data", str(folder), *flags], env=environment)
    assert isinstance(result.exception, Problem), result.output
    assert KEY not in result.output + result.exception.message
    return result.exception.message


@pytest.mark.parametrize(
    ("flags", "environment", "words"),
    [
        ((), {"ROOST_FACILITATOR_KEY": KEY}, "ROOST_FACILITATOR_RPC"),
        (RPC, {}, "ROOST_FACILITATOR_KEY_FILE"),
        ((*RPC, "--host", "0.0.0.0"), {"ROOST_FACILITATOR_KEY": KEY}, "ROOST_FACILITATOR_TOKEN"),
        ((*RPC, "--host", "example.com"), {"ROOST_FACILITATOR_KEY": KEY}, "ROOST_FACILITATOR_TOKEN"),
        (RPC, {"ROOST_FACILITATOR_KEY": KEY[1:]}, "64 hexadecimal digits"),
        (RPC, {"ROOST_FACILITATOR_KEY": KEY}, "No chain answers"),
        (RPC, {"ROOST_FACILITATOR_KEY": KEY, "ROOST_FACILITATOR_TOKEN": "short"}, "16 printable"),
        (("--rpc", "x"), {"ROOST_FACILITATOR_KEY": KEY}, "facilitator_rpc"),
    ],
)
def test_refusals_name_the_setting(
    tmp_path: object, flags: Sequence[str], environment: dict[str, str], words: str
) -> None:
    assert words in refusal(tmp_path, *flags, **environment)


def test_the_libraries_are_optional(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        local_loader.importlib.util, "find_spec", lambda name: None if name == "web3" else find_spec(name)
    )
    told = refusal(tmp_path, *RPC, ROOST_FACILITATOR_KEY=KEY)
    assert "python3 scripts/setup.py facilitator" in told
