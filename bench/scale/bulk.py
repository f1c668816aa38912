"""Rows in bulk: a transaction on the database of a server that does not run."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from roost import app, config
from roost.app.data_folder import load_host_identity
from roost.core.db import Connection
from roost.core.seal import Sealer
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.identity.tenants import DEFAULT_TENANT
from roost.keyring import load_sealer


@contextmanager
def open_in_bulk(data: Path, **environment: str) -> Iterator[tuple[Connection, str, Sealer]]:
    """Yield a transaction on the database of a server that does not run, the id of its host, and its sealer."""
    settings = config.load_settings({"ROOST_DATA": str(data), **environment})
    app.ensure_data_folder(settings)
    with closing(app.open_database(settings)) as db:
        sealer, host_id = load_sealer(settings, db), load_host_identity(data).id
        with db.writer.begin() as connection:
            if db.is_sqlite:
                connection.exec_driver_sql("PRAGMA cache_size=-1000000")  # 1 GB
            tenants.ensure_tenant(connection, DEFAULT_TENANT, Plan.PAID)
            yield connection, host_id, sealer
