"""Logging is configured once per process, so each case runs a process and reads its standard error."""

import json
import subprocess
import sys

import pytest

from roost.core.log import redact_credentials

HEX = "0123456789abcdef" * 4
CREDENTIALS = {
    "service jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
    "gateway token": f"rst_gw_{HEX}",
    "internal token": f"rst_{HEX}",
    "query string": "hunter2hunter2",
    "bearer header": "dXNlcjpwYXNz-secret",
}
AROUND = {"query string": "GET /x?a=1&token={}&b=2", "bearer header": "authorization: Bearer {}"}


def _log(code: str) -> str:
    program = f"import logging, sys\nfrom roost.core import log\n{code}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("name", CREDENTIALS)
def test_credentials_are_redacted_where_they_stand(name: str) -> None:
    secret = CREDENTIALS[name]
    text = AROUND.get(name, "before {} after").format(secret)
    assert secret not in redact_credentials(text)
    assert redact_credentials(text) == text.replace(secret, "[redacted]")


@pytest.mark.parametrize("piece", ["eyJ", "eyJa.", "rst_", "rst_a", "rst_" + "a" * 15 + "g", "token=", "bearer "])
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """Quadratic work would take hours; the test's deadline is the check."""
    text = piece * (4_000_000 // len(piece))
    assert redact_credentials(f"{text} rst_{HEX}").endswith("[redacted]")


def test_text_that_begins_like_a_jwt_hides_no_credential() -> None:
    assert redact_credentials(f"eyJhbGciOiJIUzI1_rst_gw_{HEX}") == "eyJhbGciOiJIUzI1_[redacted]"
    assert redact_credentials(f"\x1b[1m{CREDENTIALS['service jwt']}") == "\x1b[1m[redacted]"


def test_ordinary_text_stays() -> None:
    text = "GET /v0/agents/abcd2345 200 bearer of news; rst_ token= basic"
    assert redact_credentials(text) == text


def test_a_line_is_one_json_object_with_level_time_and_logger() -> None:
    line = json.loads(
        _log("log.configure_logging(pretty=False); log.get_logger('roost.x').info('thing.done', count=2)")
    )
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "thing.done", "level": "info", "logger": "roost.x", "count": 2}


def test_the_request_id_is_on_every_line_of_its_request() -> None:
    code = "log.configure_logging(pretty=False); log.request_id.set('r1'); log.get_logger('a').info('x')"
    assert json.loads(_log(code))["request_id"] == "r1"


def test_lower_levels_are_silent() -> None:
    calls = "log.get_logger('a').info('x'); logging.getLogger('b').info('y')"
    assert _log(f"log.configure_logging('warning', pretty=False); {calls}") == ""


@pytest.mark.parametrize("pretty", [True, False])
@pytest.mark.parametrize("name", CREDENTIALS)
def test_no_credential_is_logged_wherever_it_hides(name: str, pretty: bool) -> None:
    secret = CREDENTIALS[name]
    text = AROUND.get(name, "{}").format(secret)
    output = _log(f"""
log.configure_logging(pretty={pretty})
hidden = {text!r}
logger = log.get_logger('a').bind(bound=hidden)
logger.info(hidden, value=hidden, nested={{'deep': [hidden]}}, problem=ValueError(hidden))
try:
    raise ValueError(hidden)
except ValueError:
    logger.exception('crash')
    logging.getLogger('library').exception('args %s', hidden)
""")
    assert secret not in output
    assert output.count("[redacted]") >= 6
    assert "ValueError" in output


def test_redaction_leaves_json_whole() -> None:
    line = _log(
        "log.configure_logging(pretty=False); "
        """log.get_logger('a').info('said "token=abcdef" twice', more='token=abc"')"""
    )
    assert json.loads(line)["event"] == 'said "token=[redacted]" twice'


def test_tracebacks_do_not_print_local_variables() -> None:
    output = _log("""
log.configure_logging(pretty=True)
def fail():
    local = 'correct-' + 'horse'
    raise KeyError('x')
try:
    fail()
except KeyError:
    log.get_logger('a').exception('crash')
""")
    assert "KeyError" in output
    assert "correct-horse" not in output
