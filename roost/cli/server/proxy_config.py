"""`roost proxy-config`: a configuration for a proxy of the operator's own."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from roost.cli.client.session import Data
from roost.cli.output.output import write_output
from roost.cli.server.data_folder import load_local_settings


class ProxyName(StrEnum):
    CADDY = "caddy"
    NGINX = "nginx"
    TRAEFIK = "traefik"


def print_proxy_config(
    program: Annotated[ProxyName, typer.Argument(help="The program in front of Roost.")], data: Data = None
) -> None:
    """Print a configuration for a proxy of yours, which terminates TLS in front of this server.

    It has the domain, the ports and the certificate of the settings.
    """
    from roost.http.tls.proxy_config import ProxySite, render_proxy_config

    settings = load_local_settings(data)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    files = {"certificate": settings.tls_certificate, "key": settings.tls_key}
    site = ProxySite(
        settings.domain,
        f"{host}:{settings.port}",
        443 if settings.public_port == settings.port else settings.public_port,
        **{name: str(path) for name, path in files.items() if path},
    )
    write_output(render_proxy_config(program.value, site), sys.stdout)
