"""Many files that exist in the database only, for lists: a list reads nothing else."""

from datetime import timedelta

from roost.core import clock, ids
from roost.core.db import Connection
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import RAW, Cid
from roost.storage.files import store


def insert_files(connection: Connection, tenant_id: str, count: int) -> None:
    """Insert private files `report 0.txt`, `report 1.txt` ..., the newest first."""
    began = clock.utc_now()
    same = {"tenant_id": tenant_id, "network": ContentNetwork.PRIVATE, "number_of_files": 1, "keyvalues": {}}
    rows = [
        same
        | {"id": ids.new_id(), "cid": str(Cid.for_block(RAW, b"%d" % number)), "name": f"report {number}.txt"}
        | {"size": number, "mime_type": "text/plain"}
        | dict.fromkeys(("created_at", "updated_at"), began - timedelta(seconds=number))
        for number in range(count)
    ]
    connection.execute(store.files.insert(), rows)
