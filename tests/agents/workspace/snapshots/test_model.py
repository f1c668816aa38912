"""Retention and CIDs of snapshots."""

from datetime import UTC, datetime, timedelta

import pytest

from roost.agents.workspace.snapshots.model import (
    InvalidSnapshotCid,
    Snapshot,
    SnapshotNotFound,
    SnapshotTrigger,
    find_expired,
    parse_snapshot_cid,
)

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
FOLDER = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"


def snapshot(age: timedelta, label: str | None = None) -> Snapshot:
    return Snapshot(
        id=f"{age}",
        agent_id="a",
        tenant_id="t",
        cid=FOLDER,
        trigger=SnapshotTrigger.CHANGE,
        change_summary="",
        files=0,
        size=0,
        label=label,
        packs=(),
        created_at=NOW - age,
    )


def kept(*snapshots: Snapshot) -> list[str]:
    expired = find_expired(sorted(snapshots, key=lambda one: one.created_at, reverse=True), NOW)
    return [one.id for one in snapshots if one.id not in expired]


def test_all_of_a_day_are_kept() -> None:
    assert len(kept(*(snapshot(timedelta(minutes=number)) for number in range(24 * 60)))) == 24 * 60


def test_one_a_day_is_kept_for_a_month() -> None:
    hourly = [snapshot(timedelta(hours=number)) for number in range(24 * 60)]
    days = {one.created_at.date(): one.id for one in reversed(hourly)}
    found = kept(*hourly)
    assert set(found) >= {days[(NOW - timedelta(days=age)).date()] for age in range(31)}
    assert len(found) == 24 + 30
    assert max(NOW - one.created_at for one in hourly if one.id in found) < timedelta(days=31)


def test_the_newest_ten_and_labels_are_kept() -> None:
    old = [snapshot(timedelta(days=400, minutes=number)) for number in range(20)]
    labelled = snapshot(timedelta(days=800), "release")
    assert kept(*old, labelled) == [*(one.id for one in old[:10]), labelled.id]


def test_cids_have_one_spelling() -> None:
    assert parse_snapshot_cid(FOLDER) == FOLDER
    assert parse_snapshot_cid("QmbWqxBEKC3P8tqsKc98xmWNzrzDtRLMiMPL8wBuTGsMnR") == (
        "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
    )


def test_a_cid_of_one_block_is_of_no_snapshot() -> None:
    with pytest.raises(SnapshotNotFound):
        parse_snapshot_cid("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")


@pytest.mark.parametrize("text", ["", "x", None, 1])
def test_texts_that_name_no_folder_are_refused(text: object) -> None:
    with pytest.raises(InvalidSnapshotCid):
        parse_snapshot_cid(text)
