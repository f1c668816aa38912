"""What stands before the application: the envelope, the addresses, the threshold, the bounds of bodies."""

import re
from collections.abc import Sequence

from starlette.types import ASGIApp

from roost.agents.workspace.errors import FileTooLarge
from roost.hosts.address import Addresses
from roost.hosts.dispatch import Dispatch
from roost.hosts.peer import Network
from roost.hosts.threshold import Admit, Threshold
from roost.web import access
from roost.web.access import Observe
from roost.web.bodies import Allowance, Bodies, Rules
from roost.web.cross_origin import CrossOrigin
from roost.web.envelope import Envelope

RULES: Rules = (
    (re.compile(r"[A-Z]+ /v0/llm/.*"), Allowance(size=32 * 1024**2, values=None)),  # counts them for itself
    (re.compile(r"[A-Z]+ /v0/agents/[^/]+/files/upload"), Allowance(size=16 * 1024**2, message=FileTooLarge.message)),
    (
        re.compile(r"(POST|PATCH) (/v3/files(/[0-9a-f-]{36}(/[0-9a-f]+)?)?|/pinning/pinFileToIPFS)"),
        Allowance(size=None, values=None),
    ),  # uploads count for themselves
    (re.compile(r"[A-Z]+ /pinning/pinJSONToIPFS"), Allowance(size=10 * 1024**2, values=None)),  # any JSON is content
)


def front(
    app: ASGIApp,
    addresses: Addresses,
    admit: Admit,
    *,
    trusted: Sequence[Network] = (),
    observe: Observe = access.write,
) -> ASGIApp:
    """The application as a server gets it."""
    return Envelope(Dispatch(CrossOrigin(Threshold(Bodies(app, RULES), admit)), addresses, trusted), observe)
