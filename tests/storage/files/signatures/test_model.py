"""Messages that a wallet may sign to claim a file."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.signatures.model import (
    format_milliseconds,
    personal_message_digest,
    signable_digests,
    typed_data_digest,
)

OLD = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
NEW = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
RAW = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
NOW = datetime(2026, 11, 21, 10, 29, 47, 355123, tzinfo=UTC)
FILE = File("f", "t", ContentNetwork.PUBLIC, OLD, 1, 1, "text/plain", FileMetadata(), NOW, NOW)
ME, OTHER = bytes(20), bytes(19) + b"\x01"
DATES = ("2026-11-21T10:29:47.355Z", "2026-11-21T10:29:47.355123Z")


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOW, DATES[0]),
        (NOW.replace(microsecond=0), "2026-11-21T10:29:47.000Z"),
        (NOW.replace(microsecond=999_999), "2026-11-21T10:29:47.999Z"),  # truncated like in JavaScript, not rounded
        (NOW.astimezone(timezone(timedelta(hours=5, minutes=30))), DATES[0]),
    ],
)
def test_dates_as_javascript_writes_them(moment: datetime, text: str) -> None:
    assert format_milliseconds(moment) == text


def test_every_spelling_and_both_dates() -> None:
    found = signable_digests(FILE, NEW, ME)
    wanted = {typed_data_digest(ME, cid, date) for cid in (OLD, NEW) for date in DATES}
    assert set(found) == wanted | {personal_message_digest(OLD), personal_message_digest(NEW)}
    assert len(found) == len(set(found))


def test_cid_with_one_spelling_has_three_digests() -> None:
    found = signable_digests(replace(FILE, cid=RAW), RAW, ME)
    assert set(found) == {
        *(typed_data_digest(ME, RAW, date) for date in DATES),
        personal_message_digest(RAW),
    }


def test_the_caller_s_own_way_to_write_it_counts() -> None:
    assert personal_message_digest(RAW.upper()) in signable_digests(replace(FILE, cid=RAW), RAW.upper(), ME)


def test_another_account_or_file_is_another_message() -> None:
    mine, theirs = set(signable_digests(FILE, OLD, ME)), set(signable_digests(FILE, OLD, OTHER))
    assert mine & theirs == {
        personal_message_digest(OLD),
        personal_message_digest(NEW),
    }  # not an account
    later = replace(FILE, created_at=NOW + timedelta(milliseconds=1))
    assert set(signable_digests(later, OLD, ME)) & mine == mine & theirs
    assert not set(signable_digests(replace(FILE, cid=RAW), RAW, ME)) & mine
