"""Log lines in the formats of the engines, and any other text."""

import json
from datetime import UTC, datetime

import pytest

from roost.agents.workspace.logs.model import LogFilter, LogLevel, LogMessage, parse_line
from roost.warden_client.client import LogLine

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def parsed(text: str, source: str = "gateway") -> tuple[str, str, str]:
    message = parse_line(LogLine(NOW, source, text))
    assert message.timestamp == NOW
    return message.level.value, message.source, message.message


@pytest.mark.parametrize(
    ("line", "level", "source", "message"),
    [
        ("plain words", "INFO", "gateway", "plain words"),
        ("", "INFO", "gateway", ""),
        ("INFO gateway.run: Starting", "INFO", "gateway/run", "Starting"),
        ("2026-11-21 03:24:25,306 WARNING tools.registry: odd", "WARN", "tools/registry", "odd"),
        ("CRITICAL run_agent: gone", "FATAL", "run_agent", "gone"),
        ("ERROR:     it broke", "ERROR", "gateway", "    it broke"),
        ("DEBUG no name here", "DEBUG", "gateway", "no name here"),
        ("ERRORS were found", "INFO", "gateway", "ERRORS were found"),
        ("2026-11-21T03:11:02.542+00:00 [gateway] ready", "INFO", "gateway", "ready"),
        ("2026-11-21T03:11:02.542+00:00 [gateway/ws] open", "INFO", "gateway/ws", "open"),
        ("2026-11-21T03:11:02.542Z no subsystem", "INFO", "gateway", "no subsystem"),
        ("[ERROR] it broke", "ERROR", "gateway", "it broke"),
        ("[warden] exited with code 3", "WARN", "warden", "exited with code 3"),
        ("[not a name] x", "INFO", "gateway", "[not a name] x"),
        ("\x1b[31mERROR\x1b[0m a.b: red", "ERROR", "a/b", "red"),
    ],
)
def test_written_lines_are_parsed(line: str, level: str, source: str, message: str) -> None:
    assert parsed(line) == (level, source, message)


def test_the_console_of_openclaw_as_json() -> None:
    line = {"time": "2026-11-21T09:32:31Z", "level": "warn", "subsystem": "gateway/ws", "message": "slow"}
    assert parsed(json.dumps(line)) == ("WARN", "gateway/ws", "slow")
    assert parsed(json.dumps({**line, "error": "no"})) == ("WARN", "gateway/ws", 'slow {"error": "no"}')
    del line["subsystem"]
    assert parsed(json.dumps(line)) == ("WARN", "gateway", "slow")


def test_the_file_of_openclaw() -> None:
    line = {
        "0": '{"subsystem":"cron"}',
        "_meta": {"logLevelName": "FATAL", "name": '{"subsystem":"cron/runner"}'},
        "time": "2026-11-21T09:31:14.964+00:00",
        "hostname": "agent",
        "message": "two\nlines",
    }
    assert parsed(json.dumps(line)) == ("FATAL", "cron/runner", "two lines")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "{}",
        "{" * 20_000,
        '{"level": "info"}',
        '{"level": "odd", "message": "x"}',
        '{"level": "info", "message": 3}',
        '{"level": {}, "message": "x", "_meta": 3}',
        '{"message": "x", "_meta": {"logLevelName": "INFO", "name": "{"}}',
        '{"message": "x", "_meta": {"logLevelName": "INFO", "name": "{\\"a\\": 1}", "n": ' + "9" * 5000 + "}}",
    ],
)
def test_json_that_is_no_line_of_a_log_is_shown_as_it_is(line: str) -> None:
    level, source, message = parsed(line)
    assert (level, source) == ("INFO", "gateway")
    assert message == line[: 16 * 1024 + 16]


def test_nothing_hidden_in_json_steers_a_terminal() -> None:
    line = json.dumps({"level": "info", "subsystem": "\x1b[2J", "message": "\x1b[31mred\u202e \ud800", "k": "\x9b1m"})
    _, source, message = parsed(line)
    assert source == "gateway"
    assert not any(sign in message for sign in "\x1b\x9b\u202e\ud800")


@pytest.mark.parametrize(("process", "source"), [("build", "script/build"), ("start", "script/start"), ("x", "x")])
def test_scripts_have_a_source_of_their_own(process: str, source: str) -> None:
    assert parsed("hello", process) == ("INFO", source, "hello")


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        (LogFilter(), True),
        (LogFilter(LogLevel.WARN), True),
        (LogFilter(LogLevel.ERROR), False),
        (LogFilter(source="gateway"), True),
        (LogFilter(source="gateway/ws"), True),
        (LogFilter(source="gate"), False),
        (LogFilter(source="gateway/ws/x"), False),
    ],
)
def test_filter_of_a_reader_matches_level_and_source(wanted: LogFilter, admitted: bool) -> None:
    assert wanted.matches(LogMessage(NOW, LogLevel.WARN, "gateway/ws", "x")) is admitted
