"""The composition root, the only package that imports all others. It builds a server from settings and drivers."""

from roost.app.domain_services import open_tls_sockets
from roost.app.drivers import (
    Drivers,
    create_blob_store,
    create_drivers,
    create_engines,
    ensure_data_folder,
    open_database,
    prepare_engine,
    settings_for_port,
)
from roost.app.server import RoostServer, build_server

__all__ = [
    "Drivers",
    "RoostServer",
    "build_server",
    "create_blob_store",
    "create_drivers",
    "create_engines",
    "ensure_data_folder",
    "open_database",
    "open_tls_sockets",
    "prepare_engine",
    "settings_for_port",
]
