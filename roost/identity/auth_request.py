"""What authentication needs to know of a request."""

from collections.abc import Mapping
from dataclasses import dataclass

from roost.web.url_rule import HostKind


@dataclass(slots=True)  # to freeze it would double the time to make one
class AuthRequest:
    """A request to authenticate. `agent_id` and `origin` belong to the agent's address or relay.

    cookie_prefix: what the names of its cookies begin with in browsers, where other origins share them.
    limited_client: the client as limits count it; None if they do not apply to it.
    counts_use: whether the request is one of the limited uses of its key.
    """

    host_kind: HostKind
    method: str
    headers: Mapping[str, str]
    query: str
    peer: str
    agent_id: str | None = None
    origin: str = ""
    upgrade: bool = False
    cookie_prefix: str = ""
    limited_client: str | None = None
    counts_use: bool = True
