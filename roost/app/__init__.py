"""The composition root: the one room that knows every other. It builds a server from settings and drivers.

`outside` picks the drivers, `agents` and `storage` connect their wings, `server` makes them one.
"""

from roost.app.drivers import (
    Drivers,
    at_port,
    bake,
    blobs,
    data_folder,
    describe_network,
    drivers,
    engines,
    open_database,
    runtime,
    upstreams,
)
from roost.app.server import RoostServer

__all__ = [
    "Drivers",
    "RoostServer",
    "at_port",
    "bake",
    "blobs",
    "data_folder",
    "describe_network",
    "drivers",
    "engines",
    "open_database",
    "runtime",
    "upstreams",
]
