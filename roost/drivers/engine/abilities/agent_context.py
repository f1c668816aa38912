"""A running agent as an engine's ability reaches it."""

from dataclasses import dataclass

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.warden_client import WardenClient


@dataclass(frozen=True)
class AgentContext:
    """`token` is the gateway's internal one, `version` the engine's that runs there. The warden runs commands, reads
    and writes files, and dials the gateway's port; whatever it brings back an agent may have written.
    """

    warden: WardenClient
    token: Sensitive[str]
    version: str
