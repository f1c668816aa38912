from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection

from roost.storage.content.model import ContentNetwork
from roost.storage.files import store as files
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.signatures import store
from roost.storage.files.signatures.model import WalletSignature
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MADE = WalletSignature("f", "cid", "0x" + "ab" * 65, "0x" + "Cd" * 20, NOW)


@pytest.fixture(autouse=True)
def _file(env: StorageEnv) -> None:
    file = File("f", env.tenant_id, ContentNetwork.PUBLIC, "cid", 1, 1, "text/plain", FileMetadata(), NOW, NOW)
    env.db.run(lambda connection: files.insert_file(connection, file))


def test_a_row_there_and_back(env: StorageEnv) -> None:
    assert env.db.run(lambda connection: store.find_signature(connection, "f")) is None
    assert env.db.run(lambda connection: store.insert_signature(connection, MADE)) is True
    assert env.db.run(lambda connection: store.find_signature(connection, "f")) == MADE
    assert env.db.run(lambda connection: store.delete_signature(connection, "f")) is True
    assert env.db.run(lambda connection: store.delete_signature(connection, "f")) is False
    assert env.db.run(lambda connection: store.find_signature(connection, "f")) is None


def test_one_is_taken_away_and_others_stay(env: StorageEnv) -> None:
    other = replace(MADE, file_id="g")
    file = File("g", env.other_id, ContentNetwork.PUBLIC, "cid", 1, 1, "text/plain", FileMetadata(), NOW, NOW)

    def one_of_two(connection: Connection) -> tuple[bool, WalletSignature | None, WalletSignature | None]:
        files.insert_file(connection, file)
        store.insert_signature(connection, MADE)
        store.insert_signature(connection, other)
        return (
            store.delete_signature(connection, "f"),
            store.find_signature(connection, "f"),
            store.find_signature(connection, "g"),
        )

    assert env.db.run(one_of_two) == (True, None, other)


def test_a_file_has_one_and_the_transaction_goes_on(env: StorageEnv) -> None:
    def twice(connection: Connection) -> tuple[bool, bool, WalletSignature | None]:
        first = store.insert_signature(connection, MADE)
        second = store.insert_signature(connection, WalletSignature("f", "cid", "0x", "0x", NOW))
        return first, second, store.find_signature(connection, "f")

    assert env.db.run(twice) == (True, False, MADE)
