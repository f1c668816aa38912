"""Create the application from the routes of all slices. The only importer of `api.py` modules."""

from collections.abc import Sequence
from contextlib import suppress

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.agents.chat import api as chat
from roost.agents.library.hub import api as hub
from roost.agents.library.hub.clawhub import api as clawhub
from roost.agents.library.hub.clawhub.openclaw import api as openclaw_registry
from roost.agents.library.skills import api as skills
from roost.agents.library.templates import api as templates
from roost.agents.lifecycle.archives import api as archives
from roost.agents.lifecycle.key_revocation import api as key_revocation
from roost.agents.lifecycle.self_service import api as platform
from roost.agents.lifecycle.system import api as agents_system
from roost.agents.lifecycle.versions import api as versions
from roost.agents.lifecycle.workflows import api as lifecycle
from roost.agents.models.gateway import api as models
from roost.agents.models.keys import api as model_keys
from roost.agents.models.servers import api as model_servers
from roost.agents.models.usage import api as usage
from roost.agents.network.domains import api as agent_domains
from roost.agents.network.routes import api as agent_routes
from roost.agents.network.sign_in import api as sign_in
from roost.agents.setup.channels import api as channels
from roost.agents.setup.devices import api as devices
from roost.agents.setup.runtime_config import api as runtime_config
from roost.agents.setup.secrets import api as secrets
from roost.agents.setup.tasks import api as tasks
from roost.agents.workspace.commands import api as commands
from roost.agents.workspace.files import api as agent_files
from roost.agents.workspace.git import api as git
from roost.agents.workspace.logs import api as logs
from roost.agents.workspace.scripts import api as scripts
from roost.agents.workspace.snapshots import api as snapshots
from roost.events import api as events
from roost.http.openapi import description as openapi
from roost.http.server import health
from roost.http.stack import routes
from roost.http.stack.address import HostAddresses
from roost.identity import api as keys
from roost.identity.sessions import api as sessions
from roost.storage.compat import api as compat
from roost.storage.compat.psa import api as psa
from roost.storage.files import api as files
from roost.storage.files.groups import api as groups
from roost.storage.files.signatures import api as signatures
from roost.storage.files.signed_urls import api as links
from roost.storage.files.tus import api as tus
from roost.storage.files.uploads import api as uploads
from roost.storage.gateways import api as gateways
from roost.storage.gateways.analytics import api as analytics
from roost.storage.gateways.swaps import api as swaps
from roost.storage.payments import api as payments
from roost.storage.payments.instructions import api as payment_instructions
from roost.storage.pins import api as pins
from roost.storage.vectors import api as vectors
from roost.storage.webhooks import api as webhooks
from roost.web import errors
from roost.web.errors import route_methods
from roost.web.service_registry import ServiceRegistry


class _HeadAnsweredError(Exception):
    """The response is complete without the rest of its body."""


class HeadMiddleware:
    """Middleware that answers HEAD wherever GET is answered (RFC 9110, 9.3.2), unless a route has a HEAD of its own."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or "HEAD" in route_methods(self._routes, scope):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                await send({"type": "http.response.body", "body": b""})
                if message.get("more_body"):
                    raise _HeadAnsweredError  # the rest of the body may have no end
            else:
                await send(message)

        got = {**scope, "method": "GET"}
        try:
            with suppress(_HeadAnsweredError):
                await self._app(got, receive, send_head)
        finally:
            scope["route"] = got.get("route")  # for the access log


_ROUTERS = (
    archives.router,
    lifecycle.router,
    commands.router,
    chat.router,
    agent_files.router,
    git.router,
    snapshots.router,
    channels.router,
    secrets.router,
    skills.router,
    hub.router,
    openclaw_registry.router,
    clawhub.router,
    versions.router,
    scripts.router,
    agents_system.router,
    tasks.router,
    templates.router,
    devices.router,
    agent_routes.router,
    agent_domains.router,
    runtime_config.router,
    logs.router,
    models.router,
    usage.router,
    model_servers.router,
    model_keys.router,
    platform.router,
    sign_in.router,
    key_revocation.router,
    sessions.router,
    tus.creation_router,  # before form uploads, which have the same path
    tus.router,
    links.router,
    uploads.router,
    compat.router,
    pins.router,
    psa.router,
    groups.router,
    gateways.router,
    analytics.router,
    signatures.router,
    swaps.router,
    payment_instructions.router,
    payments.router,
    vectors.router,
    webhooks.router,
    keys.router,
    events.router,
    files.router,  # after the others, because its ids also match their words
    health.router,
)


def create_application(services: ServiceRegistry, addresses: HostAddresses, *extra: APIRouter) -> FastAPI:
    """Return the application with all routes of the API, and `extra` ones that no caller of it needs.

    Raises UndeclaredRightError for an operation that the URL map does not have.
    """
    app = FastAPI(
        openapi_url=None,  # `install_openapi` serves it
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    errors.install_error_handlers(app)
    app.add_middleware(HeadMiddleware, routes=app.routes)
    for router in (*_ROUTERS, *extra):
        _name_operations(router)
        app.router.routes.extend(router.routes)  # `include_router` would build the schemas of all parameters once more
    routes.check_rights(app)
    openapi.install_openapi(app, addresses)
    return app


def _name_operations(router: APIRouter) -> None:
    """Give each route the names that the description has, in place of FastAPI's own."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            route.operation_id = openapi.operation_id(route)
            if route.response_field:
                route.response_field.name = f"Response_{route.operation_id}"


def create_bare_application() -> FastAPI:
    """Return an application without services, which has all routes to describe and answers no request."""
    return create_application(ServiceRegistry(), HostAddresses())
