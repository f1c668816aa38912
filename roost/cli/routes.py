"""`roost routes`: every endpoint, who may call it, and the handler behind it."""

from prometheus_client import CollectorRegistry

from roost.cli.output import Form, Output, show_rows
from roost.hosts.mount import application
from roost.hosts.routes import table
from roost.web.provide import Rooms


def routes(output: Output = Form.TABLE) -> None:
    """List the endpoints: method, path, credentials, addresses, handler."""
    rows = table(application(Rooms(), "", {}, CollectorRegistry()))
    show_rows(rows, ("method", "path", "credentials", "addresses", "handler"), output)
