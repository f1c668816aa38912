"""What is counted: cut, cleaned and bounded."""

from datetime import date

import pytest

from roost.storage.analytics import model
from roost.storage.analytics.model import OTHER, UNKNOWN, Hit, HitAggregate, HitCount
from roost.storage.content.model import ContentNetwork
from roost.storage.unixfs.cid import Cid

TODAY = date(2026, 3, 4)
CID = Cid.for_block(0x55, b"content")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("https://App.example:8443/a/b?token=secret#x", "https://app.example:8443"),
        ("http://a.example", "http://a.example"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("android-app://org.example", "android-app://org.example"),
        ("https://user:secret@a.example/", ""),
        ("https://a.example\x1b[2J/", ""),
        ("https://" + "a" * 400, ""),
        ("https:///x", ""),
        ("javascript:alert(1)", ""),
        ("a.example", ""),
        ("", ""),
    ],
)
def test_of_a_referer_the_origin_is_kept(sent: str, kept: str) -> None:
    assert model.origin(sent) == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("curl/8.1", "curl/8.1"),
        ("", UNKNOWN),
        (" \t", UNKNOWN),
        ("a\x00b\x1b[31mc\nd\ud800", "ab[31mcd"),
        ("x" * 300, "x" * 200),
        ("Grüße", "Grüße"),
    ],
)
def test_what_visitors_say_is_cleaned(sent: str, kept: str) -> None:
    assert model.cleaned(sent, 200) == kept


def visit(cid: Cid | None = CID, name: str = "a.txt") -> Hit:
    return Hit(
        TODAY.toordinal(), "tenant", "gateway", ContentNetwork.PUBLIC, cid, name, 200, "curl", "https://a.example"
    )


def test_a_visit_is_a_line() -> None:
    line = model.line(visit(), "file.bin")
    assert line == HitAggregate("tenant", TODAY, "gateway", str(CID), "a.txt", 200, "curl", "https://a.example")
    assert model.line(visit(name=""), "file.bin").file_name == "file.bin"
    assert model.line(visit(name=""), None).file_name == UNKNOWN
    assert model.line(visit().plainer(), None) == line.of_gateway()


def lines(number: int) -> dict[HitAggregate, HitCount]:
    """Each of another user agent, the later the more requests."""
    made = model.line(visit(), None)
    return {
        HitAggregate(**{**vars(made), "user_agent": str(one), "cid": f"cid{one}"}): HitCount(one + 1, 10)
        for one in range(number)
    }


def test_what_is_asked_for_most_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "DETAILED", 3)
    monkeypatch.setattr(model, "PLAIN", 2)
    given, there = lines(8), set[bytes]()
    kept = model.fitted(given, there)
    told = {(line.cid, line.user_agent): tally.requests for line, tally in kept.items()}
    assert told == {
        ("cid7", "7"): 8,
        ("cid6", "6"): 7,
        ("cid5", "5"): 6,
        ("cid4", OTHER): 5,
        ("cid3", OTHER): 4,
        (OTHER, OTHER): 6,
    }
    assert sum(tally.bandwidth for tally in kept.values()) == 80
    again = model.fitted(given, there)
    assert {line.digest for line in again} == {line.digest for line in kept} == there


def test_lines_differ_by_all_that_they_tell() -> None:
    first = model.line(visit(), None)
    others = [
        HitAggregate(**{**vars(first), field: value})
        for field, value in {"gateway_id": "x", "cid": "x", "file_name": "x", "status": 206, "referer": "x"}.items()
    ]
    assert len({line.digest for line in (first, *others)}) == 6
