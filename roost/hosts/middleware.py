"""What stands before the application: the envelope, the addresses, the threshold, the bounds of bodies."""

import re
from collections.abc import Sequence

from starlette.types import ASGIApp

from roost.agents.workspace.errors import WorkspaceFileTooLarge
from roost.hosts.address import HostAddresses
from roost.hosts.client_address import Network
from roost.hosts.early_auth import Admit, EarlyAuthMiddleware
from roost.hosts.host_router import HostRouter
from roost.web import access_log
from roost.web.access_log import Observe
from roost.web.body_limit import BodyLimit, BodyLimitMiddleware, Rules
from roost.web.cors import CorsMiddleware
from roost.web.request_context import RequestContextMiddleware

RULES: Rules = (
    (re.compile(r"[A-Z]+ /v0/llm/.*"), BodyLimit(size=32 * 1024**2, values=None)),  # counts them for itself
    (
        re.compile(r"[A-Z]+ /v0/agents/[^/]+/files/upload"),
        BodyLimit(size=16 * 1024**2, message=WorkspaceFileTooLarge.message),
    ),
    (
        re.compile(r"(POST|PATCH) (/v3/files(/[0-9a-f-]{36}(/[0-9a-f]+)?)?|/pinning/pinFileToIPFS)"),
        BodyLimit(size=None, values=None),
    ),  # uploads count for themselves
    (re.compile(r"[A-Z]+ /pinning/pinJSONToIPFS"), BodyLimit(size=10 * 1024**2, values=None)),  # any JSON is content
)


def front(
    app: ASGIApp,
    addresses: HostAddresses,
    admit: Admit,
    *,
    trusted: Sequence[Network] = (),
    observe: Observe = access_log.write_access_log,
) -> ASGIApp:
    """The application as a server gets it."""
    return RequestContextMiddleware(
        HostRouter(CorsMiddleware(EarlyAuthMiddleware(BodyLimitMiddleware(app, RULES), admit)), addresses, trusted),
        observe,
    )
