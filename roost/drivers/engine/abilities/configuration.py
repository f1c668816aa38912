"""An engine's configuration file, as far as users may change it.

The platform's keys (address, token, workspace, log file) override the user's at every write and start, so that users
cannot lock the platform out. Secrets are shown as a placeholder of the engine; a placeholder in a write keeps the
present value.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roost.core.problem import InvalidInput, PreconditionFailed
from roost.drivers.engine.abilities.agent_context import AgentContext

if TYPE_CHECKING:
    from roost.drivers.engine.contract import GatewaySetup

TEXT_LIMIT = 512 * 1024
OUTPUT_LIMIT = 4_000


class ConfigurationRejected(InvalidInput):
    """The engine rejects the configuration; the message is the engine's, at most OUTPUT_LIMIT characters."""

    message = "The engine rejects this configuration"


class ConfigurationChanged(PreconditionFailed):
    """The file is another one than the caller knows."""

    message = "The configuration has changed since it was read: read it again"


@dataclass(frozen=True)
class ConfigurationVerdict:
    """Result of a validation; `output` is the engine's message, at most OUTPUT_LIMIT characters."""

    valid: bool
    output: str


@dataclass(frozen=True)
class ConfigurationWritten:
    """live: whether the running gateway already uses it, without a restart. undo: restores the previous file."""

    live: bool
    undo: Callable[[], Awaitable[None]]


Expectation = Callable[[str], bool]
"""Returns whether the file, as its user may see it, is the one that a write may replace."""


class ConfigurationAbility(ABC):
    """Ability to read and write the configuration.

    Methods raise EngineFailed if a gateway or program gives no usable answer, and the errors of the warden.
    """

    @abstractmethod
    async def read(self, agent: AgentContext) -> str:
        """Return the file as its user may see it, within 15 s."""

    @abstractmethod
    async def check(self, agent: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        """Validate `text` (at most TEXT_LIMIT bytes) or the present file within 60 s, without applying it."""

    @abstractmethod
    async def write(
        self, agent: AgentContext, setup: "GatewaySetup", text: str, is_expected: Expectation | None = None
    ) -> ConfigurationWritten:
        """Replace the user's part of the file by a validated text within 30 s, if the present one is expected.

        The file is the one that `plan` makes at the next start with the same setup. Raises ConfigurationRejected for
        a placeholder without a present value, and for errors that only a write detects; ConfigurationChanged.
        """
