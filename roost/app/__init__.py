"""The composition root, the only package that imports all others. It builds a server from settings and drivers."""

from roost.app.domain_services import open_tls_sockets as open_tls_sockets
from roost.app.drivers import Drivers as Drivers
from roost.app.drivers import create_blob_store as create_blob_store
from roost.app.drivers import create_drivers as create_drivers
from roost.app.drivers import create_engines as create_engines
from roost.app.drivers import ensure_data_folder as ensure_data_folder
from roost.app.drivers import open_database as open_database
from roost.app.drivers import prepare_engine as prepare_engine
from roost.app.drivers import prepare_software as prepare_software
from roost.app.drivers import settings_for_port as settings_for_port
from roost.app.server import RoostServer as RoostServer
from roost.app.server import build_server as build_server
