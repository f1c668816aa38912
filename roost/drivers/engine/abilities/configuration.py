"""Configuration: the file by which a user steers an engine, as far as it is the user's.

The platform's own keys (address, token, workspace, log file ...) are laid over whatever is written, now and at each
start, so that nobody locks the platform out and a write survives every restart. Secrets are shown as a placeholder of
the engine's; a placeholder that comes back in a write keeps the value that is there.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roost.core.problem import Problem, ProblemKind
from roost.drivers.engine.abilities.agent_context import AgentContext

if TYPE_CHECKING:
    from roost.drivers.engine.contract import GatewaySetup

TEXT_LIMIT = 512 * 1024
OUTPUT_LIMIT = 4_000


class ConfigurationRejected(Problem):
    """The engine does not take this configuration; the message is its own words, at most OUTPUT_LIMIT characters."""

    kind = ProblemKind.INVALID
    message = "The engine does not take this configuration"


@dataclass(frozen=True)
class ConfigurationVerdict:
    """output: the engine's words, at most OUTPUT_LIMIT characters. readable: whether it is of the engine's form at
    all (JSON5, YAML), whatever it means.
    """

    valid: bool
    output: str
    readable: bool = True


@dataclass(frozen=True)
class ConfigurationWritten:
    """live: whether the running gateway works by it already; if not, it takes a restart. undo: puts the file back."""

    live: bool
    undo: Callable[[], Awaitable[None]]


class ConfigurationAbility(ABC):
    """Raises EngineFailed for a gateway or program that gives no usable answer, and what the warden raises."""

    @abstractmethod
    async def read(self, inside: AgentContext) -> str:
        """The file as the user may see it, within 15 s."""

    @abstractmethod
    async def check(self, inside: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        """What the engine says of `text` (at most TEXT_LIMIT bytes), or of the file as it is; applies nothing; 60 s."""

    @abstractmethod
    async def write(self, inside: AgentContext, setup: "GatewaySetup", text: str) -> ConfigurationWritten:
        """Replace the user's part of the file by a text that was found valid; within 30 s.

        The file is what `plan` makes of it at the next start with the same setup. Raises Unacceptable: for a
        placeholder where there is nothing to keep, and for what only shows in the writing.
        """
