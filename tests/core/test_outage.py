"""The log of an outage: at its begin, once a minute, at its end; and nothing of what fails because of it."""

import json
import logging

import pytest
import structlog

from roost.core import clock, log
from roost.core.db.database import DatabaseUnavailable
from roost.core.outage import Outage
from roost.core.problem import Problem, ServiceUnavailable
from roost.drivers.blob.contract import BlobStoreFailed
from roost.drivers.blob.object_store import BucketUnavailable


def test_it_is_said_when_it_begins_once_a_minute_and_when_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now)
    with structlog.testing.capture_logs() as entries:
        outage = Outage("part")
        outage.end()
        for seconds in (0.0, 0.1, 1.0, 59.9, 60.0, 61.0, 119.9, 120.1):
            now = seconds
            outage.report("why")
        now = 130.0
        outage.end()
        outage.end()
        outage.report("again")
    told = [(entry["event"], entry["seconds"], entry["failures"]) for entry in entries]
    assert told == [
        ("outage.reported", 0, 1),
        ("outage.reported", 60, 5),
        ("outage.reported", 120, 8),
        ("outage.ended", 130, 8),
        ("outage.reported", 0, 1),
    ]


@pytest.mark.parametrize(("level", "dropped"), [("info", True), ("debug", False)])
def test_failures_because_of_an_outage_are_left_out(
    level: str, dropped: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a mistake that an outage brings to light, nor a full disk, which nothing else tells of."""
    before = structlog.get_config()
    log.configure_logging(level, pretty=False)
    full = BlobStoreFailed("The storage backend is not available: No space left on device")
    try:
        logger = structlog.get_logger()
        for error in (DatabaseUnavailable(), BucketUnavailable(), full, ValueError("a mistake")):
            error.__context__ = DatabaseUnavailable()  # as if it came in the handling of that
            try:
                raise error
            except (Problem, ValueError):
                logger.exception("task.failed")
        logger.warning("work.failed", reason=DatabaseUnavailable.message)
        logger.warning("work.failed", error=BucketUnavailable.message)
    finally:
        structlog.configure(**before)
        logging.getLogger().handlers.clear()
    lines = capsys.readouterr().err.splitlines()
    assert len([json.loads(line) for line in lines]) == (2 if dropped else 6)
    assert "No space left" in str(lines)
    assert "a mistake" in str(lines)


def test_other_services_that_are_away_are_logged() -> None:
    event = {"event": "x", "reason": ServiceUnavailable("the model is away").message}
    assert log._drop_consequence(None, "warning", event) == event
