"""The composition root: the one room that knows every other. It builds a server from settings and drivers.

`outside` picks the drivers, `agents` and `storage` connect their wings, `server` makes them one.
"""

from roost.app.outside import (
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
from roost.app.server import Roost

__all__ = [
    "Drivers",
    "Roost",
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
