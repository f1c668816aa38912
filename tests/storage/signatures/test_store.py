from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection

from roost.storage.content.model import ContentNetwork
from roost.storage.files import store as files
from roost.storage.files.model import File, FileMetadata
from roost.storage.signatures import store
from roost.storage.signatures.model import WalletSignature
from tests.storage.house import House

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MADE = WalletSignature("f", "cid", "0x" + "ab" * 65, "0x" + "Cd" * 20, NOW)


@pytest.fixture(autouse=True)
def _file(place: House) -> None:
    file = File("f", place.tenant_id, ContentNetwork.PUBLIC, "cid", 1, 1, "text/plain", FileMetadata(), NOW, NOW)
    place.db.run(lambda connection: files.insert_file(connection, file))


def test_a_row_there_and_back(place: House) -> None:
    assert place.db.run(lambda connection: store.find_signature(connection, "f")) is None
    assert place.db.run(lambda connection: store.insert_signature(connection, MADE)) is True
    assert place.db.run(lambda connection: store.find_signature(connection, "f")) == MADE
    assert place.db.run(lambda connection: store.delete_signature(connection, "f")) is True
    assert place.db.run(lambda connection: store.delete_signature(connection, "f")) is False
    assert place.db.run(lambda connection: store.find_signature(connection, "f")) is None


def test_one_is_taken_away_and_others_stay(place: House) -> None:
    other = replace(MADE, file_id="g")
    file = File("g", place.other_id, ContentNetwork.PUBLIC, "cid", 1, 1, "text/plain", FileMetadata(), NOW, NOW)

    def one_of_two(connection: Connection) -> tuple[bool, WalletSignature | None, WalletSignature | None]:
        files.insert_file(connection, file)
        store.insert_signature(connection, MADE)
        store.insert_signature(connection, other)
        return (
            store.delete_signature(connection, "f"),
            store.find_signature(connection, "f"),
            store.find_signature(connection, "g"),
        )

    assert place.db.run(one_of_two) == (True, None, other)


def test_a_file_has_one_and_the_transaction_goes_on(place: House) -> None:
    def twice(connection: Connection) -> tuple[bool, bool, WalletSignature | None]:
        first = store.insert_signature(connection, MADE)
        second = store.insert_signature(connection, WalletSignature("f", "cid", "0x", "0x", NOW))
        return first, second, store.find_signature(connection, "f")

    assert place.db.run(twice) == (True, False, MADE)
