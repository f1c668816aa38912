"""What finds a few files among many reads a few rows; measured in instructions of SQLite, which are no time."""

from collections.abc import Callable, Iterator

import pytest

from bench.scale.records import BATCH_FILES, GROUP_FILES, add_files
from roost.core.db import Connection, Database
from roost.identity import tenants
from roost.identity.tenants import DEFAULT_TENANT
from roost.migrations import upgrade_database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.store import holders_of_damaged
from roost.storage.files import store
from roost.storage.files.model import UNGROUPED, FileFilter
from tests.support.databases import count_steps

FEW, MANY = 2 * GROUP_FILES, 4 * GROUP_FILES
CID = "bafkrei1000000777"


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Database]]:
    """Return databases with few and with many files, as they are without statistics."""
    made: list[Database] = []
    for count in (FEW, MANY):
        db = Database(f"sqlite:///{tmp_path_factory.mktemp('scale') / 'roost.db'}")
        upgrade_database(db)
        db.run(lambda connection, count=count: add_files(connection, 1, count))
        made.append(db)
    yield made
    for db in made:
        db.close()


def steps(db: Database, read: Callable[[Connection], object]) -> int:
    def run(connection: Connection) -> int:
        with count_steps(connection) as counted:
            read(connection)
        return counted[0]

    return db.run(run)


def listed(filters: FileFilter) -> Callable[[Connection], object]:
    def read(connection: Connection) -> object:
        tenant = tenants.ensure_tenant(connection, DEFAULT_TENANT).id
        return store.list_files(connection, tenant, ContentNetwork.PUBLIC, filters, None, 10)

    return read


READS: dict[str, tuple[int, Callable[[Connection], object]]] = {
    "a keyvalue of a few": (BATCH_FILES, listed(FileFilter(keyvalues={"batch": "b7"}))),
    "a keyvalue of all": (10, listed(FileFilter(keyvalues={"kind": "bench"}))),
    "both": (BATCH_FILES, listed(FileFilter(keyvalues={"kind": "bench", "batch": "b7"}))),
    "a group": (10, listed(FileFilter(group_id="group 1"))),
    "no group": (0, listed(FileFilter(group_id=UNGROUPED))),
    "a CID": (1, listed(FileFilter(cid=[CID, "other"]))),
    "damaged content": (0, lambda connection: holders_of_damaged(connection, "", 10)),
}


@pytest.mark.parametrize("name", READS)
def test_work_does_not_grow_with_all_files(databases: list[Database], name: str) -> None:
    count, read = READS[name]
    few, many = (steps(db, read) for db in databases)
    assert many < 1.2 * few
    assert [len(db.run(read)) for db in databases] == [count, count]  # pyright: ignore[reportArgumentType] - lists
