"""The contract of a chat platform, which verifies a bot's tokens before they are stored.

Agents connect to platforms themselves; no conversation passes through this driver.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from roost.core.problem import InvalidInput, ServiceUnavailable
from roost.core.sensitive import Sensitive


@dataclass(frozen=True)
class BotTokens:
    """Tokens of a bot; `app` is Slack's app-level token."""

    bot: Sensitive[str]
    app: Sensitive[str] | None = None


class TokenRejected(InvalidInput):
    """The platform rejected a token; the message names its kind and the platform's reason, never the token."""

    message = "The platform rejected the bot token"


class PlatformUnreachable(ServiceUnavailable):
    """The platform did not answer or failed, so nothing is known about the tokens."""

    message = "The platform could not verify the token"


class ChatPlatform(ABC):
    """A chat platform; `name` is that of its channel, `url` the address of the API that verifies tokens."""

    name: ClassVar[str]
    url: str

    @abstractmethod
    async def check(self, tokens: BotTokens) -> str | None:
        """Verify the tokens within 5 s, without side effects, and return the bot's user name, if known.

        Raises TokenRejected, PlatformUnreachable.
        """
