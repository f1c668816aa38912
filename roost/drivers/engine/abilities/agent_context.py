"""A running agent, as engine abilities access it."""

from dataclasses import dataclass

from roost.core.sensitive import Sensitive
from roost.warden_client.client import WardenClient


@dataclass(frozen=True)
class AgentContext:
    """A running agent: its warden, its gateway's internal token, and the version of the engine that runs there.

    The warden executes commands, reads and writes files, and dials the gateway. Treat its results as untrusted: the
    agent can have written them.
    """

    warden: WardenClient
    token: Sensitive[str]
    version: str
